"""Culprits of back pressure, from the reports of several stream managers."""

from __future__ import annotations

from heron.tmanager.leader.back_pressure_reports import BackPressureReports


def test_the_cause_is_that_of_the_newest_report_that_holds() -> None:
    """A link broke and recovered while the task was slow: the remaining cause is the slow task."""
    reports = BackPressureReports()
    assert reports.report(5, 2, on=True, now_s=1.0, cause="the task is slow") == 0.0
    assert reports.report(5, 1, on=True, now_s=2.0, cause="container 2 is not reached") is None
    assert reports.culprits() == {5: (1.0, "container 2 is not reached")}
    assert reports.report(5, 1, on=False, now_s=3.0) is None
    assert reports.culprits() == {5: (1.0, "the task is slow")}
    assert reports.report(5, 2, on=True, now_s=4.0, cause="its output waits for task 7") is None
    assert reports.culprits() == {5: (1.0, "its output waits for task 7")}
    assert reports.report(5, 2, on=False, now_s=5.0) == 4.0
    assert reports.culprits() == {}
    assert reports.report(5, 2, on=False, now_s=6.0) is None


def test_a_restarted_stream_manager_withdraws_its_reports() -> None:
    """No other process could withdraw them."""
    reports = BackPressureReports()
    reports.report(5, 1, on=True, now_s=1.0, cause="a")
    reports.report(5, 2, on=True, now_s=1.0, cause="b")
    reports.report(6, 1, on=True, now_s=2.0, cause="c")
    assert reports.forget(1, 3.0) == ((6, 1.0),)
    assert reports.culprits() == {5: (1.0, "b")}


def test_the_reports_of_a_removed_container_end_with_it() -> None:
    """No other process could withdraw them."""
    reports = BackPressureReports()
    reports.report(5, 1, on=True, now_s=1.0, cause="a")
    reports.report(5, 2, on=True, now_s=1.0, cause="b")
    reports.report(6, 2, on=True, now_s=2.0, cause="c")
    assert reports.keep((1,), 4.0) == ((6, 2.0),)
    assert reports.culprits() == {5: (1.0, "a")}
