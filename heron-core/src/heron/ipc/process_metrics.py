"""Metrics that every engine process reports about itself."""

from __future__ import annotations

import resource
from collections.abc import Mapping
from pathlib import Path

from heron.ipc.documents.metric_names import CONNECTIONS_REFUSED, CPU_SECONDS, CPU_WAIT, RESIDENT_BYTES
from heron.spi.metricsink import Metric, MetricKind

__all__ = ["connection_metrics", "cpu_wait_metrics", "process_metrics"]

_STATM = Path("/proc/self/statm")
_SCHEDSTAT = Path("/proc/thread-self/schedstat")


def process_metrics() -> tuple[Metric, ...]:
    """Processor seconds so far, and resident bytes now; the peak of these where ``/proc`` is missing."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return (
        Metric(CPU_SECONDS, MetricKind.COUNTER, "s", usage.ru_utime + usage.ru_stime),
        Metric(RESIDENT_BYTES, MetricKind.GAUGE, "bytes", _resident_bytes(usage.ru_maxrss * 1024)),
    )


def cpu_wait_metrics() -> list[Metric]:
    """Seconds that the calling thread was ready to run and had no processor; empty if the kernel does not tell."""
    try:
        waited_s = int(_SCHEDSTAT.read_text().split()[1]) / 1e9
    except (OSError, IndexError, ValueError):
        return []
    return [Metric(CPU_WAIT, MetricKind.COUNTER, "s", waited_s)]


def connection_metrics(refused: Mapping[str, int]) -> tuple[Metric, ...]:
    """The connections from the network that were refused: one counter for each reason."""
    return tuple(
        [
            Metric(CONNECTIONS_REFUSED, MetricKind.COUNTER, "connections", number, {"reason": reason})
            for reason, number in refused.items()
        ]
    )


def _resident_bytes(peak_bytes: int) -> int:
    try:
        pages = int(_STATM.read_text().split()[1])
    except (OSError, IndexError, ValueError):
        return peak_bytes
    return pages * resource.getpagesize()
