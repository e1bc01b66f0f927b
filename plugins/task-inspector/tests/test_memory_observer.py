"""The memory of this process: what grows between two looks, and what holds it."""

from __future__ import annotations

import sys
import threading
import tracemalloc
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from heron.errors import RemoteProtocolError
from heron.spi.inspected_task import InspectedTask, TaskIdentity
from heron.spi.task_memory import TaskMemory, decode_memory, encode_memory
from heron_task_inspector import memory_holders, memory_look
from heron_task_inspector.memory_holders import holders_of, lines_with
from heron_task_inspector.memory_look import HeldNow, held_growth, look_at_memory, type_growth
from heron_task_inspector.memory_observer import MemoryObserver
from heron_task_inspector.process_memory import allocator_free_bytes, parsed_rollup, resident_bytes

pytestmark = pytest.mark.leaks_nothing

NAMES = {str(number): "a global name of a module of the author" for number in range(1_000)}


class Event:
    def __init__(self, number: int) -> None:
        self.number = number


class Leaking:
    def __init__(self) -> None:
        self.events: list[Event] = []
        self.image = bytearray(3 << 20)
        self.limit = 7

    def leak(self, number: int) -> None:
        for each in range(number):
            self.events.append(Event(each))


class Slotted:
    __slots__ = ("events",)


@pytest.fixture(autouse=True)
def small_samples(monkeypatch: pytest.MonkeyPatch) -> None:
    """The process of the tests has many more objects than a task."""
    monkeypatch.setattr(memory_look, "_SAMPLE", 20_000)


@pytest.fixture
def task() -> Iterator[InspectedTask]:
    """A task whose component leaks."""
    made = InspectedTask(TaskIdentity("t", "count", 3))
    made.component = Leaking()
    counts = [{f"one {number}": number for number in range(30_000)}, {"two": 2, "three": 3}]
    made.states = lambda: {"counts": counts}
    yield made
    made.component = None


def observed(task: InspectedTask, seconds: float) -> TaskMemory:
    """The answer of an observation, while the component leaks."""
    component = task.component
    with ThreadPoolExecutor(1) as question:
        asked = question.submit(MemoryObserver(task, seconds, threading.Event()).observe)
        while not asked.done():
            if isinstance(component, Leaking) and tracemalloc.is_tracing() and tracemalloc.get_traceback_limit() > 1:
                component.leak(200)  # on a busy machine it has few turns
            threading.Event().wait(0.001)
        return asked.result()


def test_the_line_that_leaks_is_the_first_one(task: InspectedTask) -> None:
    """With the type that it makes, and the attribute that holds it; tracing ends with the observation."""
    memory = observed(task, 0.4)
    assert not tracemalloc.is_tracing()
    assert (memory.component, memory.task_id) == ("count", 3)
    lines = [each for each in memory.lines if each.origin == "user"]
    assert lines[0].source in ("self.events.append(Event(each))", "self.number = number")
    assert lines[0].grown_bytes > 0
    event = next(each for each in memory.types if each.name == f"{__name__}.Event")
    assert event.grown_objects > 20
    held = {each.name: each for each in memory.held}
    assert held["self.events"].grown_entries == held["self.events"].entries
    assert held["self.events"].grown_bytes > 1_000
    assert held["self.image"].held_bytes >= 3 << 20
    assert held["state 'counts'"].entries == 30_002
    assert "self.limit" not in held
    assert next(each for each in memory.buffers if each.held_by == "self.image").type == "bytearray"
    assert memory.traced_s >= 0.4  # whatever the look before it took
    assert memory.tracer_bytes > 0
    assert memory.second.resident_bytes > memory.second.file_bytes >= 0
    assert memory.second.objects_bytes > 0
    assert memory.second.share > 0


@pytest.mark.matrix
def test_a_single_look_traces_nothing(task: InspectedTask) -> None:
    """It costs the least, and shows what is held."""
    memory = observed(task, 0.0)
    assert (memory.lines, memory.traced_s, memory.first) == ((), 0.0, memory.second)
    assert any(each.name == "self.image" for each in memory.held)


def test_an_observation_ends_early_with_its_process() -> None:
    """A process that stops does not wait for minutes, and leaves no tracer behind."""
    stop = threading.Event()
    stop.set()
    assert MemoryObserver(InspectedTask(), 300.0, stop).observe().traced_s < 60.0
    assert not tracemalloc.is_tracing()


@pytest.mark.matrix
def test_the_bound_of_the_tracer_ends_the_observation(task: InspectedTask, monkeypatch: pytest.MonkeyPatch) -> None:
    """A task that keeps millions of objects would pay for all of them."""
    monkeypatch.setattr("heron_task_inspector.allocations._MOST_BYTES", 10_000)
    memory = observed(task, 300.0)
    assert memory.traced_s < 60.0
    assert [each for each in memory.notes if each.startswith("tracing ended after ")]


@pytest.mark.matrix
def test_a_component_that_traces_is_not_disturbed(task: InspectedTask, monkeypatch: pytest.MonkeyPatch) -> None:
    """The rest of the answer comes all the same."""
    monkeypatch.setattr(memory_look, "_SAMPLE", 2_000)
    tracemalloc.start()
    try:
        memory = observed(task, 0.1)
        assert tracemalloc.is_tracing()
    finally:
        tracemalloc.stop()
    assert memory.lines == ()
    assert memory.notes == ("the component uses tracemalloc itself, so no lines are shown",)
    assert memory.types


def test_too_many_objects_are_not_listed(task: InspectedTask, monkeypatch: pytest.MonkeyPatch) -> None:
    """The list alone would stop the task for a second. What the component holds is still shown."""
    monkeypatch.setattr(memory_look, "MOST_BLOCKS", 10)
    seen = look_at_memory(task.component, {}, threading.Event())
    assert seen.look.share == 0.0
    assert "self.image" in seen.held


def test_a_sample_stands_for_all_objects(monkeypatch: pytest.MonkeyPatch) -> None:
    """The share of the containers that were looked at is part of the answer."""
    events = [Event(number) for number in range(30_000)]
    monkeypatch.setattr(memory_look, "_SAMPLE", 5_000)
    seen = look_at_memory(None, {}, threading.Event())
    assert 0 < seen.look.share < 1
    assert seen.types[f"{__name__}.Event"][0] == pytest.approx(len(events), rel=0.2)


@pytest.mark.matrix
def test_a_tuple_that_another_thread_makes_is_not_touched() -> None:
    """CPython raises SystemError in the author's code if a tuple has a second owner when it is complete."""
    ends = threading.Event()
    failures: list[BaseException] = []

    def items() -> Iterator[int]:
        for number in range(50):
            ends.wait(0.0005)  # another thread runs now
            yield number

    def make_tuples() -> None:
        try:
            while not ends.is_set():
                assert len(tuple(items())) == 50
        except BaseException as error:  # SystemError is the one that matters
            failures.append(error)

    maker = threading.Thread(target=make_tuples)
    maker.start()
    for _ in range(5):
        objects = memory_look._tracked_objects(1)
        assert objects
        assert not any(type(each) is tuple for each in objects)
    ends.set()
    maker.join()
    assert failures == []


def test_every_so_many_objects_stand_for_all(monkeypatch: pytest.MonkeyPatch) -> None:
    """A list of all objects would take too long, and much memory."""
    events = [Event(number) for number in range(30_000)]
    monkeypatch.setattr(memory_look, "_BLOCKS_A_STEP", sys.getallocatedblocks() // 5)
    seen = look_at_memory(None, {}, threading.Event())
    assert seen.look.share < 0.2
    assert seen.types[f"{__name__}.Event"][0] == pytest.approx(len(events), rel=0.3)


def test_what_grows_has_the_lines_that_use_it() -> None:
    """The tuples that a list keeps were allocated by the engine, so no allocating line of the author shows them."""
    found = lines_with(Leaking(), "events")
    assert [each.source for each in found] == ["self.events: list[Event] = []", "self.events.append(Event(each))"]
    assert {each.file for each in found} == {__file__}
    assert lines_with(Leaking(), "event") == lines_with(None, "events") == lines_with(Slotted(), "events") == ()


@pytest.mark.matrix
@pytest.mark.parametrize("component", [None, Slotted(), object()])
def test_a_component_without_attributes_holds_nothing(component: object) -> None:
    """The question may come before the constructor has ended."""
    assert not [each for each in look_at_memory(component, {}, threading.Event()).held if each.startswith("self.")]


def test_what_is_new_or_gone_is_a_difference_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """A table that was replaced has not grown."""
    monkeypatch.setattr(memory_holders, "_MOST", 1_000_000)  # a process of tests has many modules
    held = held_growth(
        {"self.a": HeldNow("dict", 2, 200, at_least=False), "self.gone": HeldNow("dict", 1, 1, at_least=False)},
        {"self.a": HeldNow("dict", 5, 500, at_least=True), "self.b": HeldNow("list", None, 900, at_least=False)},
    )
    assert [(each.name, each.entries, each.grown_entries, each.grown_bytes) for each in held] == [
        ("self.b", None, 0, 900),
        ("self.a", 5, 3, 300),
    ]
    (names,) = [each for each in holders_of(None, {}) if each.name == f"{__name__}.NAMES"]
    assert (names.type, names.entries()) == ("dict", 1_000)
    many = {f"type {number}": (1, 1_000) for number in range(50)}
    types = type_growth(many, {**many, "small": (4, 40)})
    assert (types[-1].name, types[-1].grown_objects, len(types)) == ("small", 4, 31)


def test_the_kernel_and_the_allocator_are_asked() -> None:
    """A text without the values is an error that the caller expects."""
    resident, files = resident_bytes()
    assert resident > files > 0
    assert parsed_rollup("7f-7f ---p [rollup]\nRss:  100 kB\nPss: 1 kB\nAnonymous:  60 kB\n") == (102_400, 40_960)
    free_bytes = allocator_free_bytes()
    assert free_bytes is None or free_bytes > 0
    with pytest.raises(ValueError, match="no Rss and Anonymous in Rss: 1 kB"):
        parsed_rollup("Rss: 1 kB")


def test_an_answer_that_does_not_decode_is_an_error() -> None:
    """The task may be of another version."""
    with pytest.raises(RemoteProtocolError, match="a document about memory of 2 bytes cannot be read"):
        decode_memory(b"{}")
    seen = look_at_memory(None, {}, threading.Event()).look
    memory = TaskMemory("t", "count", 3, 1, 0, 7, "here", seen, seen, 0.0, 0, (), (), (), ())
    assert decode_memory(encode_memory(memory)) == memory
