"""What every engine process measures of itself: processor time and resident memory."""

from __future__ import annotations

import resource
from pathlib import Path

from heron.ipc.metric_names import CPU_SECONDS, RESIDENT_BYTES
from heron.spi.metricsink import Metric, MetricKind

__all__ = ["process_metrics"]

_STATM = Path("/proc/self/statm")


def process_metrics() -> tuple[Metric, ...]:
    """Processor seconds so far, and resident bytes now (the peak where the system does not tell)."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return (
        Metric(CPU_SECONDS, MetricKind.COUNTER, "s", usage.ru_utime + usage.ru_stime),
        Metric(RESIDENT_BYTES, MetricKind.GAUGE, "bytes", _resident_bytes(usage.ru_maxrss * 1024)),
    )


def _resident_bytes(peak_bytes: int) -> int:
    try:
        pages = int(_STATM.read_text().split()[1])
    except (OSError, IndexError, ValueError):
        return peak_bytes
    return pages * resource.getpagesize()
