"""Who is a culprit, since when, and why, as several stream managers say it."""

from __future__ import annotations

from heron.tmanager.back_pressure_reports import BackPressureReports


def test_the_cause_is_that_of_who_still_reports() -> None:
    """A link that broke and healed while the task was slow all along: it is slow, and reached."""
    board = BackPressureReports()
    assert board.report(5, 2, on=True, now_s=1.0, cause="the task is slow") == 0.0
    assert board.report(5, 1, on=True, now_s=2.0, cause="container 2 is not reached") is None
    assert board.culprits() == {5: (1.0, "container 2 is not reached")}
    assert board.report(5, 1, on=False, now_s=3.0) is None
    assert board.culprits() == {5: (1.0, "the task is slow")}
    assert board.report(5, 2, on=True, now_s=4.0, cause="its output waits for task 7") is None
    assert board.culprits() == {5: (1.0, "its output waits for task 7")}
    assert board.report(5, 2, on=False, now_s=5.0) == 4.0
    assert board.culprits() == {}
    assert board.report(5, 2, on=False, now_s=6.0) is None


def test_who_begins_anew_takes_its_reports_along() -> None:
    """Nothing may stick that nobody can lift any more."""
    board = BackPressureReports()
    board.report(5, 1, on=True, now_s=1.0, cause="a")
    board.report(5, 2, on=True, now_s=1.0, cause="b")
    board.report(6, 1, on=True, now_s=2.0, cause="c")
    assert board.forget(1, 3.0) == ((6, 1.0),)
    assert board.culprits() == {5: (1.0, "b")}
