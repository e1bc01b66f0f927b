"""The metrics of checkpoints, which the topology manager publishes."""

from __future__ import annotations

from heron.ipc.documents.metric_names import (
    CHECKPOINT_AGE,
    CHECKPOINT_ALIGN,
    CHECKPOINT_BYTES,
    CHECKPOINT_DURATION,
    CHECKPOINT_NUMBER,
    CHECKPOINTS_FAILED,
    RESTORES,
)
from heron.ipc.documents.status import CheckpointStatus
from heron.spi.metricsink import Metric, MetricKind

__all__ = ["checkpoint_metrics"]


def checkpoint_metrics(status: CheckpointStatus | None, now_s: float) -> tuple[Metric, ...]:
    """The metrics of a topology with checkpoints; `now_s` is wall time. Before the first complete one only counts."""
    if status is None:
        return ()
    gauge, counter = MetricKind.GAUGE, MetricKind.COUNTER
    counts = (
        Metric(CHECKPOINTS_FAILED, counter, "checkpoints", status.failed),
        Metric(RESTORES, counter, "restores", status.restores),
    )
    if not status.completed_at_s:
        return counts
    return (
        *counts,
        Metric(CHECKPOINT_NUMBER, gauge, "number", status.complete),
        Metric(CHECKPOINT_AGE, gauge, "s", max(0.0, now_s - status.completed_at_s)),
        Metric(CHECKPOINT_DURATION, gauge, "s", status.duration_s),
        Metric(CHECKPOINT_ALIGN, gauge, "s", status.align_s),
        Metric(CHECKPOINT_BYTES, gauge, "bytes", status.size_bytes),
    )
