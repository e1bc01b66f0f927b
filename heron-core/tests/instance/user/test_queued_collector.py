"""The collector for threads that a component starts itself."""

from __future__ import annotations

import _thread
import threading

import pytest

from heron.api.tuple import Tuple
from heron.errors import UsageError
from heron.instance.queues.data_queue import Sleeper
from heron.instance.user.queued_collector import QueuedCollector, QueuedTarget


class Calls:
    """The component's methods; records each call with its thread."""

    def __init__(self) -> None:
        self.made: list[tuple[str, object, int]] = []

    def emit(self, values: object, **_rest: object) -> None:
        self.made.append(("emit", values, threading.get_ident()))

    def ack(self, tup: Tuple) -> None:
        self.made.append(("ack", tup, threading.get_ident()))

    def fail(self, tup: Tuple) -> None:
        raise ValueError(tup)


def collector() -> tuple[QueuedCollector, Calls]:
    target, calls = QueuedTarget(), Calls()
    target.emit, target.ack, target.fail = calls.emit, calls.ack, calls.fail
    return QueuedCollector(target, Sleeper()), calls


def test_calls_of_other_threads_are_made_on_the_task_thread_in_order() -> None:
    """So the component's state needs no locks."""
    queued, calls = collector()
    tup = Tuple()
    values = ["a"]

    def other() -> None:
        queued.emit(values)
        values[0] = "changed"
        queued.ack(tup)

    thread = threading.Thread(target=other)
    thread.start()
    thread.join()
    assert calls.made == []
    queued.drain(lambda _error, _place: None)
    me = threading.get_ident()
    assert calls.made == [("emit", ("a",), me), ("ack", tup, me)]


def test_a_failed_call_does_not_stop_later_calls() -> None:
    """Its exception is passed on like any failure of user code."""
    queued, calls = collector()
    failures: list[tuple[BaseException, str]] = []
    queued.fail(Tuple())
    queued.emit(["after"])
    queued.drain(lambda error, place: failures.append((error, place)))
    line = test_a_failed_call_does_not_stop_later_calls.__code__.co_firstlineno + 4
    assert [(type(error), place) for error, place in failures] == [(ValueError, f"{__file__}, line {line}")]
    assert [name for name, _, _ in calls.made] == ["emit"]


def test_a_thread_that_calls_too_fast_waits() -> None:
    """Otherwise its emits would fill the memory under back pressure."""
    queued, calls = collector()
    wanted = 25_000

    def other() -> None:
        for number in range(wanted):
            queued.emit([number])

    thread = threading.Thread(target=other)
    thread.start()
    most = 0
    while len(calls.made) < wanted:
        most = max(most, len(queued))
        queued.drain(lambda _error, _place: None)
    thread.join()
    assert most <= 10_000
    assert [values for _, values, _ in calls.made] == [(number,) for number in range(wanted)]


def test_a_call_from_the_task_thread_itself_never_waits() -> None:
    """No other thread would make room."""
    queued, calls = collector()
    for number in range(10_001):
        queued.emit([number])
    queued.drain(lambda _error, _place: None)
    assert len(calls.made) == 10_001


def test_a_call_just_before_the_task_thread_sleeps_is_seen() -> None:
    """The task thread does not check the queued calls before it sleeps, so the nudge is remembered."""
    sleeper = Sleeper()
    queued = QueuedCollector(QueuedTarget(), sleeper)
    queued._queue(lambda: None)
    sleeper.prepare()
    assert sleeper.take_nudge()
    assert not sleeper.take_nudge()


class NudgeEvent(Sleeper):
    """Says when it is nudged, which is the last step of a call."""

    def __init__(self) -> None:
        super().__init__()
        self.nudged = threading.Event()

    def nudge(self) -> None:
        self.nudged.set()


def test_a_thread_of_a_c_library_can_call_it() -> None:
    """Such a thread has no frame of Python below the call, so there is no line to show."""
    sleeper, target, calls, tup = NudgeEvent(), QueuedTarget(), Calls(), Tuple()
    target.ack = calls.ack
    queued = QueuedCollector(target, sleeper)
    _thread.start_new_thread(queued.ack, (tup,))
    assert sleeper.nudged.wait(10.0)
    queued.drain(lambda _error, _place: None)
    assert [each[:2] for each in calls.made] == [("ack", tup)]


def test_a_text_and_a_single_tuple_reach_the_component_as_they_are() -> None:
    """It refuses them. Their characters and fields would pass for values and anchors."""
    target, given = QueuedTarget(), []
    target.emit = lambda values, **more: given.append((values, more.get("anchors")))
    queued, tup = QueuedCollector(target, Sleeper()), Tuple()
    queued.emit("ab")
    queued.emit([1], anchors=tup)  # type: ignore[arg-type]  # refused by the component
    queued.drain(lambda _error, _place: None)
    assert given == [("ab", None), ((1,), tup)]


def test_a_queued_function_runs_on_the_task_thread_between_other_calls() -> None:
    """A component's thread hands over whatever needs the component: an emit with its task ids, a metric."""
    queued, calls = collector()
    me = threading.get_ident()

    def other() -> None:
        queued.emit(["a"])
        queued.call(lambda: calls.made.append(("called", None, threading.get_ident())))
        queued.emit(["b"])

    thread = threading.Thread(target=other)
    thread.start()
    thread.join()
    queued.drain(lambda _error, _place: None)
    assert calls.made == [("emit", ("a",), me), ("called", None, me), ("emit", ("b",), me)]


def test_what_cannot_be_called_is_refused_at_the_call() -> None:
    """The author's line is in the traceback."""
    queued, _ = collector()
    with pytest.raises(UsageError, match="call: 5 cannot be called; give a function without arguments"):
        queued.call(5)  # type: ignore[arg-type]  # the mistake
    assert len(queued) == 0
