"""Calls of user code that last too long: found by looks, reported once, and told apart from many short calls."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Generator
from types import FrameType

import pytest

from heron.instance.queues.data_queue import DataIn, DataOut
from heron.instance.stacks.engine_wait import codes_of, engine_wait
from heron.instance.stacks.long_calls import LongCall, LongCalls, look_period_s
from heron.ipc.frames.frame_limits import FrameLimits
from heron.ipc.wakeup import Wakeup
from heron.kernel.queue_capacity import QueueCapacity
from heron_testing.waiting import Eventually

LIMITS = FrameLimits(4_000_000)

CAPACITY = QueueCapacity(1 << 16, 1 << 20, 0.1)
Frames = Generator[FrameType]

SOURCE = """
import sys

def process():
    yield sys._getframe()
    yield sys._getframe()
"""


def frames_of(filename: str) -> Frames:
    """A call that stands in a line, like one that a thread is in; the next step moves it on."""
    names: dict[str, Callable[[], Frames]] = {}
    exec(compile(SOURCE, filename, "exec"), names)  # noqa: S102  # a made-up file
    return names["process"]()


class Watch:
    """Looks every second at the frame that the test sets."""

    def __init__(self, limit_s: float = 3.0) -> None:
        self.calls = LongCalls(limit_s)
        self.now_s = 100.0
        self.rounds = 1

    def look(self, frame: FrameType | None, times: int = 1) -> list[LongCall]:
        found = []
        for _ in range(times):
            self.now_s += 1.0
            report = self.calls.look(self.rounds, lambda: frame, self.now_s)
            found += [report] if report is not None else []
        return found


def test_a_call_is_reported_when_the_limit_is_over_and_then_repeated() -> None:
    """The first report is for people; the others are for a topology manager that begins later."""
    watch, call = Watch(), frames_of("/me/words.py")
    frame = next(call)
    assert watch.look(frame, 4) == []  # the first look only reads the rounds
    assert watch.look(frame) == [LongCall("process", "/me/words.py, line 5", 3.0)]
    assert watch.look(frame, 4) == []
    next(call)
    assert watch.look(frame) == [LongCall("process", "/me/words.py, line 6", 8.0, repeated=True)]
    assert LongCall("process", "/me/words.py, line 5", 3.2).text() == (
        "has been in one call of process for 3 s, at /me/words.py, line 5"
    )


@pytest.mark.parametrize("ends", ["round", "call", "idle"])
def test_the_end_of_a_reported_call_is_reported(ends: str) -> None:
    """The next call is watched from its own beginning."""
    watch, first, second = Watch(), frames_of("/me/words.py"), frames_of("/me/words.py")  # kept, or their frames change
    assert len(watch.look(next(first), 5)) == 1
    following = next(second)
    watch.rounds += ends == "round"
    expected = [LongCall("process", "", 4.0, on=False)]
    assert watch.look(None if ends == "idle" else following) == expected
    assert watch.look(following, 2) == []
    assert [each.on for each in watch.look(following, 2)] == [True]


def test_many_short_calls_are_no_long_call() -> None:
    """A round can have many calls of the same function; each of them has a frame of its own."""
    watch, calls = Watch(), [frames_of("/me/words.py") for _ in range(20)]
    for call in calls:
        assert watch.look(next(call)) == []


def test_a_task_whose_rounds_go_on_is_not_looked_at() -> None:
    """Then a look costs the comparison of two numbers."""
    calls = LongCalls(3.0)
    for rounds in range(20):
        assert calls.look(rounds, pytest.fail, float(rounds)) is None


def test_code_of_the_engine_and_of_libraries_is_no_call_of_user_code() -> None:
    """A task without input stays in the engine for hours."""
    watch, call = Watch(), frames_of("<generated>")
    assert watch.look(next(call), 20) == []


def test_the_wait_for_room_for_output_is_not_the_authors(eventually: Eventually) -> None:
    """Back pressure is shown as such, at the task that causes it: here `emit` waits in a call of user code."""
    out = DataOut(Wakeup(), DataIn(Wakeup(), CAPACITY).sleeper, CAPACITY, LIMITS)
    out.put([b"x" * (1 << 19)] * 4)
    names: dict[str, Callable[[], object]] = {"emit": lambda: out.wait_for_room(30.0)}
    exec(compile("def process():\n    emit()", "/me/words.py", "exec"), names)  # noqa: S102  # a made-up file
    thread = threading.Thread(target=names["process"])
    thread.start()

    def frame() -> FrameType | None:
        return sys._current_frames().get(thread.ident or 0)

    def waits() -> bool:
        innermost = frame()
        return innermost is not None and engine_wait(codes_of(innermost)) == "room for its output"

    eventually(waits, what="the wait")
    watch = Watch()
    assert watch.look(frame(), 20) == []
    out.sent(1 << 21)
    thread.join(30.0)


@pytest.mark.parametrize(("limit_s", "period_s"), [(10.0, 1.0), (60.0, 1.0), (1.0, 0.1), (0.1, 0.05)])
def test_a_report_is_late_by_at_most_a_tenth(limit_s: float, period_s: float) -> None:
    """A short limit is for tests; a long one needs no more looks than one a second."""
    assert look_period_s(limit_s) == period_s
