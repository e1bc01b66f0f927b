"""The task reports and the metrics of a stream manager."""

from __future__ import annotations

from heron.clock import monotonic_s
from heron.ipc import control_pb2 as pb
from heron.ipc.link import CreditWindow
from heron.stmgr.ack_routing import AckRouting
from heron.stmgr.back_pressure import Culprits, PressureChanged
from heron.stmgr.counters import TimerLateness, TrafficCounters
from heron.stmgr.instance_links import TaskReports
from heron.stmgr.local_tasks import LocalTasks
from heron.stmgr.outlet import Watermarks
from heron.stmgr.router import Router
from heron.stmgr.stmgr_metrics import pressure_event, routing_metrics


def test_a_task_that_has_ended_stays_ended() -> None:
    """A restarted task that had ended must not count as running again."""
    reports = TaskReports()
    reports.note(pb.TaskReport(task_id=1, phase=pb.TASK_PHASE_RUNNING))
    assert not reports.ended(1)
    reports.note(pb.TaskReport(task_id=1, phase=pb.TASK_PHASE_ENDED))
    reports.note(pb.TaskReport(task_id=1, phase=pb.TASK_PHASE_RUNNING))
    reports.note(pb.TaskReport(task_id=2, phase=pb.TASK_PHASE_FAILED, error="no"))
    assert reports.ended(1)
    assert [(each.task_id, each.phase) for each in reports.all()] == [
        (1, pb.TASK_PHASE_ENDED),
        (2, pb.TASK_PHASE_FAILED),
    ]


def test_every_counter_is_a_metric_with_a_unit() -> None:
    """Dropped, refused and lost data must be visible under its own name."""
    router, counters, culprits = (
        Router(AckRouting(LocalTasks(1, ()), monotonic_s), Watermarks(5, 10, 20)),
        TrafficCounters(refused_frames=3),
        Culprits(),
    )
    router.set_tasks([4])
    culprits.update(frozenset({4}), 1.0)
    metrics = {metric.name: metric for metric in routing_metrics(router, counters, culprits, 3.0)}
    assert (metrics["refused-frames"].value, metrics["refused-frames"].unit) == (3, "frames")
    assert metrics["bytes-to-peers"].unit == "bytes"
    assert metrics["outlet-bytes"].labels == {"task": "4"}
    assert metrics["backpressure-s"].value == 2.0
    assert "unroutable-segments" in metrics


def test_a_pressure_event_names_culprit_cause_and_duration() -> None:
    """An operator reads which task was slow, and for how long."""
    event = pressure_event(2, 7, PressureChanged(5, False, 1.25), "the task is slow", 99.0)
    assert (event.id, event.name, event.subject) == ("stmgr-2-7", "backpressure-ended", "task-5")
    assert event.attributes == {"cause": "the task is slow", "duration_s": "1.250"}


def test_lateness_beyond_a_tolerance_is_counted() -> None:
    """A process that is stopped for most of the time is late; a busy one is not."""
    lateness = TimerLateness()
    for now_s in (10.1, 10.15, 10.19):
        lateness.fired(now_s, 10.1)
    assert lateness.total_s == 0.0
    lateness.fired(11.0, 10.1)
    assert round(lateness.total_s, 6) == 0.9
    lateness.fired(11.1, 11.1)
    assert round(lateness.total_s, 6) == 0.9


def test_what_a_task_has_not_consumed_is_a_metric() -> None:
    """It shows that a task has work, even if its process says nothing; a task without any has no such metric."""
    router = Router(AckRouting(LocalTasks(1, ()), monotonic_s), Watermarks(5, 10, 20))
    router.set_tasks([4, 5, 6])
    for task_id, released in ((4, 30), (5, 100)):
        window = router.outlets[task_id].window = CreditWindow(1000)
        window.spend(100)
        window.release(released)
    metrics = routing_metrics(router, TrafficCounters(), Culprits(), 3.0)
    assert [(each.labels["task"], each.value) for each in metrics if each.name == "unconfirmed-bytes"] == [("4", 70)]
