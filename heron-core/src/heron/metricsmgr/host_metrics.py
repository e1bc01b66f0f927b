"""Metrics of the host and of the container, which the metrics manager of each container reports.

They are read from files of the Linux kernel. A metric whose file is missing or has another form is left out: not every
kernel counts everything, and a container may hide it.
"""

from __future__ import annotations

import os
from pathlib import Path

from heron.ipc.documents.metric_names import (
    CONTAINER_MEMORY,
    CONTAINER_MEMORY_LIMIT,
    CONTAINER_THROTTLED,
    HOST_CPU,
    HOST_CPU_PRESSURE,
    HOST_CPUS,
    HOST_MEMORY_AVAILABLE,
    HOST_RUN_QUEUE,
)
from heron.kernel.own_cgroup import OwnCgroup, keyed_numbers
from heron.spi.metricsink import Metric, MetricKind

__all__ = ["HostMetrics"]

_MODES = ("user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal")  # the order in /proc/stat
_OTHER_MODES = ("idle", "iowait", "steal")  # all others are busy
_KIB = 1024


class HostMetrics:
    """Reads the files below `root`, which is ``/`` except in tests."""

    def __init__(self, root: Path = Path("/"), ticks_per_s: int | None = None) -> None:
        self._proc = root / "proc"
        self._cgroup = OwnCgroup(root)
        self._ticks_per_s = ticks_per_s or os.sysconf("SC_CLK_TCK")

    def metrics(self) -> tuple[Metric, ...]:
        """Everything that the kernel tells now."""
        return (*self._processors(), *self._memory(), *self._container())

    def _processors(self) -> list[Metric]:
        lines = keyed_numbers(self._proc / "stat")
        metrics = []
        if times := lines.get("cpu"):
            ticks = dict(zip(_MODES, times, strict=False))
            modes = {mode: ticks.pop(mode, 0.0) for mode in _OTHER_MODES} | {"busy": sum(ticks.values())}
            metrics += [
                Metric(HOST_CPU, MetricKind.COUNTER, "s", value / self._ticks_per_s, {"mode": mode})
                for mode, value in modes.items()
            ]
            metrics.append(Metric(HOST_CPUS, MetricKind.GAUGE, "1", len([name for name in lines if _is_one_cpu(name)])))
        if running := lines.get("procs_running"):
            metrics.append(Metric(HOST_RUN_QUEUE, MetricKind.GAUGE, "threads", running[0]))
        if (pressed_us := _pressure_us(self._proc / "pressure/cpu")) is not None:
            metrics.append(Metric(HOST_CPU_PRESSURE, MetricKind.COUNTER, "s", pressed_us / 1e6))
        return metrics

    def _memory(self) -> list[Metric]:
        available = keyed_numbers(self._proc / "meminfo").get("MemAvailable:")
        return [Metric(HOST_MEMORY_AVAILABLE, MetricKind.GAUGE, "bytes", available[0] * _KIB)] if available else []

    def _container(self) -> list[Metric]:
        """The cgroup of this process; its memory only if it has less than the host."""
        used, limit = self._cgroup.memory_used_bytes(), self._cgroup.memory_limit_bytes()
        metrics = []
        if used is not None and limit is not None:
            metrics.append(Metric(CONTAINER_MEMORY, MetricKind.GAUGE, "bytes", used))
            metrics.append(Metric(CONTAINER_MEMORY_LIMIT, MetricKind.GAUGE, "bytes", limit))
        stat = self._cgroup.processor_stat()
        if throttled_us := stat.get("throttled_usec"):
            metrics.append(Metric(CONTAINER_THROTTLED, MetricKind.COUNTER, "s", throttled_us[0] / 1e6))
        elif throttled_ns := stat.get("throttled_time"):
            metrics.append(Metric(CONTAINER_THROTTLED, MetricKind.COUNTER, "s", throttled_ns[0] / 1e9))
        return metrics


def _pressure_us(path: Path) -> float | None:
    try:
        text = path.read_text(encoding="ascii", errors="replace")
    except OSError:
        return None
    for word in text.partition("\n")[0].split():
        name, _, value = word.partition("=")
        if name == "total" and value.isdigit():
            return float(value)
    return None


def _is_one_cpu(name: str) -> bool:
    return name.startswith("cpu") and name[3:].isdigit()
