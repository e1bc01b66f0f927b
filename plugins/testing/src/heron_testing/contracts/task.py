"""The contract suite of task inspectors. Subclass `TaskInspectorContract` and name the driver."""

from __future__ import annotations

import threading
import tracemalloc
from collections.abc import Callable, Iterator
from typing import Generic, TypeVar

import msgspec
import pytest

from heron.errors import PluginError
from heron.spi.inspected_task import InspectedTask, TaskIdentity
from heron.spi.inspector import TaskInspector
from heron.spi.task_capture import decode_capture
from heron.spi.task_memory import decode_memory, encode_memory
from heron.spi.task_profile import decode_profile, encode_profile
from heron.spi.task_stacks import decode_stacks, encode_stacks
from heron.spi.task_tuples import TaskTuples, decode_tuples, encode_tuples
from heron_testing.contracts.driver import DriverContract, in_time
from heron_testing.waiting import wait_until

__all__ = ["TaskInspectorContract"]

T = TypeVar("T")

_ENTRIES = 50_000  # the largest holders are shown, and a process of tests has many
_IDENTITY = TaskIdentity("words", "count", 7, 2, 3)
_SECRET = "kept-to-itself-4711"  # noqa: S105 - not one
_LONG_S = 300.0
_ANSWER_S = 30.0  # only ends a hang


class _OfTheAuthor:
    """Its own code may do anything, so nobody may run it to look at it."""

    def __init__(self) -> None:
        self.words = [str(number) for number in range(_ENTRIES)]

    def _called(self, *_: object) -> bool:
        raise AssertionError

    __repr__ = __eq__ = __len__ = __bool__ = __hash__ = __iter__ = __sizeof__ = __reduce__ = _called  # type: ignore[assignment]  # none of them returns

    @property
    def total(self) -> int:
        """Raise."""
        raise AssertionError


class _Asked(Generic[T]):
    """A question on a thread of its own, as a task asks it."""

    def __init__(self, ask: Callable[[threading.Event], T]) -> None:
        self.stop = threading.Event()
        self._found: list[T] = []
        self._errors: list[BaseException] = []
        self._thread = threading.Thread(target=self._run, args=(ask,), name="question", daemon=True)
        self._thread.start()

    def is_alive(self) -> bool:
        return self._thread.is_alive()

    def answer(self) -> T:
        """Wait for the end, and return the answer or raise what the call has raised."""
        self._thread.join(_ANSWER_S)
        assert not self._thread.is_alive(), f"the question has no answer after {_ANSWER_S:g} s"
        if self._errors:
            raise self._errors[0]
        return self._found[0]

    def _run(self, ask: Callable[[threading.Event], T]) -> None:
        try:
            self._found.append(ask(self.stop))
        except BaseException as error:  # the case raises it
            self._errors.append(error)


class TaskInspectorContract(DriverContract):
    """Cases for `heron.spi.inspector.TaskInspector`. The process of the tests is the task."""

    family = "task"

    @pytest.fixture
    def inspector(self, options: dict[str, object]) -> TaskInspector:
        """The inspector under test."""
        opened = self.driver_class.open(options)
        assert isinstance(opened, TaskInspector)
        return opened

    @pytest.fixture
    def task(self) -> Iterator[InspectedTask]:
        """A task with one input and one output; the case fails if something stays behind."""
        before = threading.active_count()
        made = InspectedTask(_IDENTITY, (_SECRET,), component=_OfTheAuthor(), inputs=1, outputs=1)
        counts = {number: str(number) for number in range(_ENTRIES)}
        made.states = lambda: {"counts": [counts]}
        yield made
        assert made.sample is None, "the task still fills a sample"
        assert not tracemalloc.is_tracing(), "the process still traces its allocations"
        assert threading.active_count() == before, f"threads stay: {threading.enumerate()}"

    def test_stacks_show_every_other_thread(self, inspector: TaskInspector, task: InspectedTask) -> None:
        """The thread of the component is the first one, because people ask where it stands."""
        end = threading.Event()
        other = threading.Thread(target=end.wait, name="of the author", daemon=True)
        other.start()
        try:
            with in_time(0.5):
                stacks = _Asked(lambda stop: inspector.stacks(task, stop)).answer()
        finally:
            end.set()
            other.join()
        assert decode_stacks(encode_stacks(stacks)) == stacks
        assert TaskIdentity(*(getattr(stacks, name) for name in TaskIdentity.__slots__)) == _IDENTITY
        assert stacks.threads[0].role == "task"
        names = [each.name for each in stacks.threads]
        assert "of the author" in names
        assert "question" not in names
        (calls,) = (each.frames for each in stacks.threads if each.name == "of the author")
        assert calls[-1].function.endswith("wait")

    def test_stacks_name_the_gateway_and_what_the_engine_waits_for(
        self, inspector: TaskInspector, task: InspectedTask
    ) -> None:
        """A task that waits for input does not wait for just any lock."""
        end = threading.Event()
        gateway = threading.Thread(target=end.wait, name="sockets", daemon=True)
        gateway.start()
        task.gateway_thread = gateway.ident or 0
        task.engine_wait = lambda calls: "input" if any(each.co_name == "wait" for each in calls) else ""

        def is_seen() -> bool:
            second = _Asked(lambda stop: inspector.stacks(task, stop)).answer().threads[1]
            return (second.name, second.role, second.waits_for) == ("sockets", "gateway", "input")

        try:
            wait_until(is_seen, _ANSWER_S, "the wait of the gateway")  # on a busy machine it may be ready, not waiting
        finally:
            end.set()
            gateway.join()

    def test_a_profile_shows_what_the_main_thread_does(self, inspector: TaskInspector, task: InspectedTask) -> None:
        """The component runs there."""
        asked = _Asked(lambda stop: inspector.profile(task, 0.5, stop))
        _compute(asked.is_alive)
        profile = asked.answer()
        assert decode_profile(encode_profile(profile)) == profile
        assert profile.samples > 0
        assert profile.lasted_s >= 0.25
        computes = {index for index, each in enumerate(profile.frames) if each.function.endswith(_compute.__name__)}
        assert sum(each.on_s for each in profile.stacks if computes.intersection(each.frames)) > 0

    def test_one_look_at_the_memory_traces_nothing(self, inspector: TaskInspector, task: InspectedTask) -> None:
        """It is the cheapest question about memory, also for a task with much of it."""
        memory = _Asked(lambda stop: inspector.memory(task, 0.0, stop)).answer()
        assert decode_memory(encode_memory(memory)) == memory
        assert (memory.component, memory.task_id, memory.traced_s, memory.lines) == ("count", 7, 0.0, ())
        assert memory.second.resident_bytes > 0
        held = {each.name: each.entries for each in memory.held}
        assert (held["state 'counts'"], held["self.words"]) == (_ENTRIES, _ENTRIES)

    def test_memory_that_grows_is_seen(self, inspector: TaskInspector, task: InspectedTask) -> None:
        """Two looks show what one cannot."""
        component = task.component
        assert isinstance(component, _OfTheAuthor)
        asked = _Asked(lambda stop: inspector.memory(task, 0.3, stop))
        pause = threading.Event()
        while asked.is_alive():
            component.words.append("more" * 10)
            pause.wait(0.001)
        memory = asked.answer()
        assert memory.second.at_s > memory.first.at_s
        (words,) = [each for each in memory.held if each.name == "self.words"]
        assert words.grown_entries > 0

    def test_tuples_are_those_of_both_directions(self, inspector: TaskInspector, task: InspectedTask) -> None:
        """The question ends when both are complete; what comes later is left out."""
        tuples = self._tuples(inspector, task, 2, ("one", 1), ("two", 2), ("three", 3))
        assert decode_tuples(encode_tuples(tuples)) == tuples
        assert (len(tuples.received), len(tuples.emitted)) == (2, 2)
        received, emitted = tuples.received[1], tuples.emitted[0]
        assert (received.component, received.task_id, received.stream) == ("words", 1, "default")
        assert (received.fields, received.values) == (("word", "n"), ("'two'", "2"))
        assert (emitted.component, emitted.task_id, emitted.values) == ("count", 7, ("'one'", "1"))

    def test_a_capture_has_every_arrival(self, inspector: TaskInspector, task: InspectedTask) -> None:
        """Of values, it may keep a part. An inspector that takes no captures declines, and leaves the task alone."""
        asked = _Asked(lambda stop: inspector.capture(task, _LONG_S, 1 << 20, None, stop))
        wait_until(lambda: task.sample is not None or not asked.is_alive(), _ANSWER_S, "the begin of the capture")
        if (sample := task.sample) is None:
            with pytest.raises(PluginError, match="takes no captures"):
                asked.answer()
            return
        sample.emit("default", ("word", "n"), [("one", 1), ("two", 2)])
        sample.emit("default", ("word", "n"), [(_OfTheAuthor(), 3)])
        asked.stop.set()
        capture = asked.answer()
        assert decode_capture(msgspec.json.encode(capture)) == capture
        assert (capture.component, capture.task_id, capture.after_limit) == ("count", 7, 0)
        assert [(each.name, each.fields) for each in capture.streams] == [("default", ("word", "n"))]
        assert [each.tuples for each in capture.flushes] == [2, 1]
        assert [each.at_us for each in capture.flushes] == sorted(each.at_us for each in capture.flushes)
        assert sum(capture.unkept.values()) == 1

    def test_values_are_short_and_without_secrets(self, inspector: TaskInspector, task: InspectedTask) -> None:
        """People copy them into tickets, and nobody waits for the text of an object of the author."""
        values = [f"a {_SECRET} b", {"key": _SECRET}, "x" * 10_000, _OfTheAuthor(), list(range(100_000))]
        tuples = self._tuples(inspector, task, len(values), *((each, 1) for each in values))
        texts = [each.values[0] for each in (*tuples.received, *tuples.emitted)]
        assert len(texts) == 2 * len(values)
        assert max(map(len, texts)) <= 120
        assert not [each for each in texts if _SECRET in each]

    def test_a_direction_that_does_not_exist_is_not_waited_for(
        self, inspector: TaskInspector, task: InspectedTask
    ) -> None:
        """Else each look at a sink would last until its time limit."""
        task.outputs = 0
        assert len(self._tuples(inspector, task, 1, ("one", 1)).received) == 1

    def test_tuples_that_do_not_come_are_not_waited_for_longer(
        self, inspector: TaskInspector, task: InspectedTask
    ) -> None:
        """A task that stands still is one that people look at."""
        with in_time(1.0):
            tuples = _Asked(lambda stop: inspector.tuples(task, 1, 0.1, stop)).answer()
        assert (tuples.received, tuples.emitted) == ((), ())

    @pytest.mark.parametrize("question", ["profile", "memory", "tuples"])
    def test_a_question_ends_early_with_its_process(
        self, question: str, inspector: TaskInspector, task: InspectedTask
    ) -> None:
        """A process that stops does not wait for minutes."""
        asks: dict[str, Callable[[threading.Event], object]] = {
            "profile": lambda stop: inspector.profile(task, _LONG_S, stop),
            "memory": lambda stop: inspector.memory(task, _LONG_S, stop),
            "tuples": lambda stop: inspector.tuples(task, 1, _LONG_S, stop),
        }
        asked = _Asked(asks[question])
        asked.stop.wait(0.1)
        assert asked.is_alive()
        asked.stop.set()
        with in_time(1.0):
            asked.answer()

    def test_a_task_without_a_component_can_be_asked(self, inspector: TaskInspector) -> None:
        """The question may come before the constructor has ended."""
        early = InspectedTask(_IDENTITY)
        assert _Asked(lambda stop: inspector.memory(early, 0.0, stop)).answer().task_id == 7
        assert _Asked(lambda stop: inspector.stacks(early, stop)).answer().threads

    def _tuples(
        self, inspector: TaskInspector, task: InspectedTask, wanted: int, *rows: tuple[object, int]
    ) -> TaskTuples:
        """The answer when these rows have arrived and were emitted."""
        asked = _Asked(lambda stop: inspector.tuples(task, wanted, _LONG_S, stop))
        wait_until(lambda: task.sample is not None, _ANSWER_S, "a sample")
        sample = task.sample
        assert sample is not None
        sample.receive(("words", "default"), 1, ("word", "n"), lambda number: rows[:number])
        sample.emit("default", ("word", "n"), rows)
        return asked.answer()


def _compute(is_wanted: Callable[[], bool]) -> None:
    while is_wanted():
        sum(range(1000))
