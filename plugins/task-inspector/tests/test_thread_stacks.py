"""What the stacks of a task say: whose code runs, and whether a thread runs or waits."""

from __future__ import annotations

import linecache
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from heron.instance.queues.data_queue import DataIn
from heron.instance.stacks.engine_wait import engine_wait
from heron.ipc.wakeup import Wakeup
from heron.kernel.queue_capacity import QueueCapacity
from heron.spi.inspected_task import InspectedTask, TaskIdentity
from heron.spi.task_stacks import TaskStacks, decode_stacks, encode_stacks
from heron_task_inspector.thread_stacks import stack_frames, stacks_now, state_of, thread_usages
from heron_task_inspector.thread_usage import ThreadUsage, thread_usage, wait_of
from heron_testing.waiting import Eventually

TASK = InspectedTask(TaskIdentity("t", "count", 3), engine_wait=engine_wait)


@pytest.mark.parametrize(
    ("x86_64", "aarch64", "expected"),
    [
        ("230 0x1 0x1 0x7f48", "115 0x1 0x1 0x7f48", "the end of a sleep"),
        ("202 0x55a7 0x189", "98 0x55a7 0x189", "a lock"),
        ("7 0x7f 0x1 0xffffffff", "73 0x7f 0x1", "an event of a socket, pipe or timer"),
        ("45 0x5 0x7f 0x1", "207 0x5 0x7f 0x1", "a socket"),
        ("0 0x3 0x7f 0x1", "63 0x3 0x7f 0x1", "a socket"),
        ("0 0x4 0x7f 0x1", "63 0x4 0x7f 0x1", "a pipe"),
        ("0 0x5 0x7f 0x1", "63 0x5 0x7f 0x1", "a file"),
        ("61 0xffffffff", "260 0xffffffff", "a child process"),
        ("running", "running", ""),
        ("-1 0x7ffc 0x7f48", "-1 0x7ffc 0x7f48", ""),
        ("9999 0x1", "9999 0x1", ""),
        ("", "", ""),
    ],
)
def test_the_system_call_says_what_a_thread_waits_for(x86_64: str, aarch64: str, expected: str) -> None:
    """A read says by its descriptor what it reads from. Of an unknown processor, nothing is guessed."""
    target_of = {3: "socket:[1]", 4: "pipe:[2]", 5: "/home/me/words.txt"}.__getitem__
    assert wait_of(x86_64, target_of, "x86_64") == expected
    assert wait_of(aarch64, target_of, "aarch64") == expected
    assert wait_of(x86_64, target_of, "riscv64") == ""


def test_processor_time_tells_a_thread_that_computes_from_one_that_waits() -> None:
    """Both wait for the interpreter lock while another thread looks, so their state at that moment is the same."""
    before = ThreadUsage("S", 1.0)
    assert state_of(before, ThreadUsage("S", 1.5), 1.0) == ("running", 0.5)
    assert state_of(before, ThreadUsage("S", 1.015625), 1.0) == ("waits", 0.015625)
    assert state_of(before, ThreadUsage("R", 1.0), 0.1) == ("ready", 0.0)
    assert state_of(None, ThreadUsage("S", 1.0), 0.1) == ("waits", 0.0)
    assert state_of(before, ThreadUsage("S", 1.2), 0.1) == ("running", 1.0)


def test_a_deep_recursion_is_shortened_in_the_middle() -> None:
    """The answer has a bounded size; both ends of the stack say most."""

    def deep(depth: int) -> tuple[int, int, str]:
        if depth:
            return deep(depth - 1)
        frames, omitted = stack_frames(sys._getframe())
        return len(frames), omitted, frames[-1].function

    count, omitted, innermost = deep(400)
    assert count == 120
    assert omitted > 280
    assert innermost.endswith("deep")
    frames, omitted = stack_frames(sys._getframe())
    assert omitted == 0
    assert frames[-1].source == "frames, omitted = stack_frames(sys._getframe())"
    assert stack_frames(None) == ((), 0)


def looked_at() -> TaskStacks:
    """The other threads, as a thread of a question sees them."""
    with ThreadPoolExecutor(1) as question:
        return question.submit(stacks_now, TASK, thread_usages(), 0.1).result()


def waiting(name: str, wait: Callable[[], object]) -> threading.Thread:
    thread = threading.Thread(target=wait, name=name, daemon=True)
    thread.start()
    return thread


def test_every_thread_is_shown_with_what_it_waits_for(eventually: Eventually) -> None:
    """A task that waits for tuples does not wait for just any lock. The values survive the wire."""
    data_in = DataIn(Wakeup(), QueueCapacity(1 << 16, 1 << 20, 0.1))
    end = threading.Event()
    idle, other = waiting("idle", lambda: data_in.wait(30.0)), waiting("locked", lambda: end.wait(30.0))

    def reasons() -> dict[str, tuple[str, str]]:
        stacks = looked_at()
        assert decode_stacks(encode_stacks(stacks)) == stacks
        assert stacks.threads[0].role == "task"  # pytest's main thread waits; it is found by its thread, not its name
        return {each.name: (each.state, each.waits_for) for each in stacks.threads}

    expected = {"idle": ("waits", "input"), "locked": ("waits", "a lock")}
    eventually(lambda: reasons().items() >= expected.items(), what=f"{expected}")
    end.set()
    data_in.sleeper.nudge()
    idle.join()
    other.join()


GENERATOR = """
def numbers(begun, go_on):
    begun.set()
    go_on.wait(30.0)
    yield 1

def process(begun, go_on, moved, end):
    for number in numbers(begun, go_on):
        moved.set()
        end.wait(30.0)
"""


class ModuleOfAnArchive:
    """The loader of a module; its source is read when somebody asks for a line."""

    def __init__(self, on_read: Callable[[], object]) -> None:
        self._on_read = on_read

    def get_source(self, _name: str) -> str:
        """Return the source; slow, as an archive on a busy machine."""
        self._on_read()
        return GENERATOR


def test_a_thread_that_goes_on_meanwhile_is_shown_with_all_its_callers() -> None:
    """Sources are read from files, which gives the lock away; a generator that then yields has no callers any more."""
    go_on, moved, end = (threading.Event() for _ in range(3))

    def let_it_move() -> None:
        go_on.set()
        assert moved.wait(30.0)

    linecache.clearcache()
    names: dict[str, Any] = {"__name__": "archived", "__loader__": ModuleOfAnArchive(let_it_move)}
    exec(compile(GENERATOR, "/archive.zip/archived.py", "exec"), names)  # noqa: S102  # a made-up file

    def begin(name: str, go_on: threading.Event, moved: threading.Event) -> threading.Thread:
        begun = threading.Event()
        thread = waiting(name, lambda: names["process"](begun, go_on, moved, end))
        assert begun.wait(30.0)
        return thread

    # Threads are described in the order of their begin, or in the opposite one: a still thread is always before it.
    threads = [begin("still", end, end), begin("moving", go_on, moved), begin("still", end, end)]
    stacks = looked_at()
    (found,) = [each for each in stacks.threads if each.name == "moving"]
    own = [(each.function, each.line) for each in found.frames if each.file == "/archive.zip/archived.py"]
    assert own == [("process", 8), ("numbers", 4)]
    assert moved.is_set()
    end.set()
    for thread in threads:
        thread.join()


def test_a_thread_that_has_ended_has_no_usage() -> None:
    """Threads end at any time, also between two looks."""
    assert thread_usage(1 << 30) is None
    usage = thread_usage(threading.get_native_id())
    assert usage is not None
    assert usage.cpu_s > 0
