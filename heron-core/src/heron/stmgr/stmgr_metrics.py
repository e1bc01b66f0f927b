"""The metrics and events of a stream manager. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields

from heron.ipc.documents.metric_names import (
    BACKPRESSURE,
    DROPPED_TUPLES,
    LATE_ACKS,
    OUTLET_BYTES,
    PEER_SILENT,
    ROOTS_IN_FLIGHT,
    SETTLED_ROOTS,
    UNCONFIRMED_BYTES,
)
from heron.spi.metricsink import Event, Metric, MetricKind
from heron.stmgr.back_pressure import Culprits, PressureChanged
from heron.stmgr.counters import AckCounters, TrafficCounters
from heron.stmgr.peer_reach import ReachChanged
from heron.stmgr.router import Router

__all__ = ["ack_metrics", "pressure_event", "reach_event", "reach_metrics", "routing_metrics", "violation_event"]

_COUNTED = tuple(each.name for each in fields(TrafficCounters))


def routing_metrics(router: Router, counters: TrafficCounters, culprits: Culprits, now_s: float) -> list[Metric]:
    """Every metric of the routing, at a moment (monotonic seconds)."""
    metrics = [
        Metric(
            name.replace("_", "-"),
            MetricKind.COUNTER,
            next((unit for unit in ("bytes", "tuples") if unit in name), "frames"),
            getattr(counters, name),
        )
        for name in _COUNTED
    ]
    metrics.append(Metric("unroutable-segments", MetricKind.COUNTER, "segments", router.unroutable_segments))
    metrics.extend(
        Metric(OUTLET_BYTES, MetricKind.GAUGE, "bytes", outlet.queued_bytes, {"task": str(task_id)})
        for task_id, outlet in router.outlets.items()
    )
    metrics.extend(
        Metric(UNCONFIRMED_BYTES, MetricKind.GAUGE, "bytes", unconfirmed, {"task": str(task_id)})
        for task_id, outlet in router.outlets.items()
        if (unconfirmed := outlet.unconfirmed_bytes)
    )
    metrics.extend(
        Metric(BACKPRESSURE, MetricKind.COUNTER, "s", total_s, {"task": str(task_id)})
        for task_id, total_s in culprits.totals_s(now_s).items()
    )
    metrics.extend(
        Metric(DROPPED_TUPLES, MetricKind.COUNTER, "tuples", count, {"task": str(task_id), "reason": "back-pressure"})
        for task_id, count in router.dropped_tuples.items()
    )
    return metrics


def ack_metrics(counters: AckCounters, in_flight: int) -> list[Metric]:
    """Every metric of the ledgers; `in_flight` is the number of roots in flight."""
    late = {"ack": counters.late_acks, "fail": counters.late_fails}
    return [
        Metric(ROOTS_IN_FLIGHT, MetricKind.GAUGE, "roots", in_flight),
        *(
            Metric(SETTLED_ROOTS, MetricKind.COUNTER, "roots", count, {"outcome": outcome.name.lower()})
            for outcome, count in counters.settled.items()
        ),
        *(Metric(LATE_ACKS, MetricKind.COUNTER, "roots", count, {"kind": kind}) for kind, count in late.items()),
    ]


def pressure_event(container_id: int, number: int, change: PressureChanged, cause: str, at_s: float) -> Event:
    """The event that a task became a culprit or stopped being one, at a moment (wall-clock seconds)."""
    name = "backpressure-started" if change.on else "backpressure-ended"
    attributes = {"cause": cause} | ({} if change.on else {"duration_s": f"{change.duration_s:.3f}"})
    return Event(f"stmgr-{container_id}-{number}", name, at_s, f"task-{change.task_id}", "", attributes)


def violation_event(container_id: int, number: int, message: str, at_s: float) -> Event:
    """The event that a session ended because of a frame; the topology manager lists it as an error."""
    return Event(
        f"stmgr-{container_id}-{number}", "user-error", at_s, f"stmgr-{container_id}", "", {"message": message}
    )


def reach_metrics(silent_s: Mapping[int, float]) -> list[Metric]:
    """For how long each peer that is not reached has been silent."""
    return [
        Metric(PEER_SILENT, MetricKind.GAUGE, "s", seconds, {"peer": str(container_id)})
        for container_id, seconds in silent_s.items()
    ]


def reach_event(container_id: int, number: int, change: ReachChanged, at_s: float) -> Event:
    """The event that a peer is no longer reached, or is reached again, at a moment (wall-clock seconds)."""
    name = "peer-reached" if change.reached else "peer-not-reached"
    attributes = {"silent_s": f"{change.silent_s:.3f}"}
    return Event(f"stmgr-{container_id}-{number}", name, at_s, f"stmgr-{change.container_id}", "", attributes)
