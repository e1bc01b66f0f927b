"""What a process that listens on the network reports of those whom it did not let in."""

from __future__ import annotations

from collections.abc import Mapping

from heron.ipc.metric_names import CONNECTIONS_REFUSED
from heron.spi.metricsink import Metric, MetricKind

__all__ = ["connection_metrics"]


def connection_metrics(refused: Mapping[str, int]) -> tuple[Metric, ...]:
    """One counter for each reason."""
    return tuple(
        [
            Metric(CONNECTIONS_REFUSED, MetricKind.COUNTER, "connections", number, {"reason": reason})
            for reason, number in refused.items()
        ]
    )
