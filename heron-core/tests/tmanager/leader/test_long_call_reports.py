"""Long calls of user code in the status: while they last, and no longer."""

from __future__ import annotations

from heron.ipc.documents.status import LongCallStatus
from heron.tmanager.leader.instructions import NoteEvent
from heron.tmanager.leader.long_call_reports import LongCallReport, LongCallReports
from heron_testing.fake_clock import FakeClock

PLACE = "/me/words.py, line 7"


def report(lasts_s: float = 10.0, *, on: bool = True, incarnation: int = 2) -> LongCallReport:
    return LongCallReport(3, incarnation, on, "process", PLACE if on else "", lasts_s)


def test_a_call_is_noted_once_and_shown_until_its_end() -> None:
    """Repeated reports only say that it still lasts."""
    clock = FakeClock()
    reports, began_s = LongCallReports(clock), clock.wall_s()
    facts = {"component": "count", "function": "process"}
    begun = NoteEvent("long-call", "task-3", {**facts, "place": PLACE, "lasts_s": "10.000"})
    assert reports.take(report(), "count", 2) == [begun]
    clock.advance(5.0)
    assert reports.take(report(15.0), "count", 2) == []
    assert reports.statuses() == (LongCallStatus(3, "count", "process", PLACE, began_s - 10.0),)
    ended = NoteEvent("long-call-ended", "task-3", {**facts, "duration_s": "17.000"})
    assert reports.take(report(17.0, on=False), "count", 2) == [ended]
    assert reports.statuses() == ()
    assert reports.take(report(17.0, on=False), "count", 2) == []  # a new leader has not heard of the call


def test_reports_of_former_processes_and_unknown_tasks_are_ignored() -> None:
    """A process that was killed in its call never reports the end."""
    reports = LongCallReports(FakeClock())
    assert reports.take(report(incarnation=1), "count", 2) == []
    assert reports.take(report(), "", 0) == []
    reports.take(report(), "count", 2)
    reports.forget(3)
    assert reports.statuses() == ()
    reports.forget(3)


def test_a_task_that_no_longer_repeats_its_report_is_not_shown() -> None:
    """Its last report may have been lost with a connection."""
    clock = FakeClock()
    reports = LongCallReports(clock)
    reports.take(report(), "count", 2)
    clock.advance(20.0)
    assert len(reports.statuses()) == 1
    clock.advance(1.0)
    assert reports.statuses() == ()
