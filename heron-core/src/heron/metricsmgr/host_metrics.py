"""Metrics of the host and of the container, which the metrics manager of each container reports.

They are read from files of the Linux kernel. A metric whose file is missing or has another form is left out: not every
kernel counts everything, and a container may hide it.
"""

from __future__ import annotations

import os
from pathlib import Path

from heron.ipc.metric_names import (
    CONTAINER_MEMORY,
    CONTAINER_MEMORY_LIMIT,
    CONTAINER_THROTTLED,
    HOST_CPU,
    HOST_CPU_PRESSURE,
    HOST_CPUS,
    HOST_MEMORY_AVAILABLE,
    HOST_RUN_QUEUE,
)
from heron.spi.metricsink import Metric, MetricKind

__all__ = ["HostMetrics"]

_MODES = ("user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal")  # the order in /proc/stat
_OTHER_MODES = ("idle", "iowait", "steal")  # all others are busy
_KIB = 1024


class HostMetrics:
    """Reads the files below `root`, which is ``/`` except in tests."""

    def __init__(self, root: Path = Path("/"), ticks_per_s: int | None = None) -> None:
        self._proc = root / "proc"
        self._cgroups = root / "sys/fs/cgroup"
        self._ticks_per_s = ticks_per_s or os.sysconf("SC_CLK_TCK")

    def metrics(self) -> tuple[Metric, ...]:
        """Everything that the kernel tells now."""
        return (*self._processors(), *self._memory(), *self._container())

    def _processors(self) -> list[Metric]:
        lines = _lines(self._proc / "stat")
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
        available = _lines(self._proc / "meminfo").get("MemAvailable:")
        return [Metric(HOST_MEMORY_AVAILABLE, MetricKind.GAUGE, "bytes", available[0] * _KIB)] if available else []

    def _container(self) -> list[Metric]:
        """The cgroup of this process, version 2 or 1; its memory only if it has less than the host."""
        unified, by_controller = self._own_cgroups()
        memory = by_controller.get("memory")
        if memory is not None:
            used, limit = _number(memory / "memory.usage_in_bytes"), _number(memory / "memory.limit_in_bytes")
        else:
            used, limit = _number(unified / "memory.current"), _number(unified / "memory.max")
        metrics = []
        total = _lines(self._proc / "meminfo").get("MemTotal:")
        if used is not None and limit is not None and total and limit < total[0] * _KIB:
            metrics.append(Metric(CONTAINER_MEMORY, MetricKind.GAUGE, "bytes", used))
            metrics.append(Metric(CONTAINER_MEMORY_LIMIT, MetricKind.GAUGE, "bytes", limit))
        stat = _lines(by_controller.get("cpu", unified) / "cpu.stat")
        if throttled_us := stat.get("throttled_usec"):
            metrics.append(Metric(CONTAINER_THROTTLED, MetricKind.COUNTER, "s", throttled_us[0] / 1e6))
        elif throttled_ns := stat.get("throttled_time"):
            metrics.append(Metric(CONTAINER_THROTTLED, MetricKind.COUNTER, "s", throttled_ns[0] / 1e9))
        return metrics

    def _own_cgroups(self) -> tuple[Path, dict[str, Path]]:
        """The folder in the hierarchy of version 2, and those in the hierarchies of version 1 by controller."""
        unified, by_controller = self._cgroups, {}
        for line in _text(self._proc / "self/cgroup").splitlines():
            _, _, rest = line.partition(":")
            controllers, _, path = rest.partition(":")
            if not controllers:
                unified = _inside(self._cgroups, path)
            for each in filter(None, controllers.split(",")):
                if (self._cgroups / each).is_dir():
                    by_controller[each] = _inside(self._cgroups / each, path)
        return unified, by_controller


def _inside(hierarchy: Path, path: str) -> Path:
    """The folder of a cgroup; the root of the hierarchy where a container sees only its own cgroup there."""
    folder = hierarchy / path.lstrip("/")
    return folder if folder.is_dir() else hierarchy


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="ascii", errors="replace")
    except OSError:
        return ""


def _lines(path: Path) -> dict[str, list[float]]:
    """The numbers behind the first word of each line, by that word; lines without any are left out."""
    found: dict[str, list[float]] = {}
    for line in _text(path).splitlines():
        name, _, rest = line.partition(" ")
        numbers = [float(word) for word in rest.split() if word.isdigit()]
        if numbers:
            found[name] = numbers
    return found


def _number(path: Path) -> float | None:
    """The number in a file; infinite for ``max``."""
    text = _text(path).strip()
    if text == "max":
        return float("inf")
    return float(text) if text.isdigit() else None


def _pressure_us(path: Path) -> float | None:
    for word in _text(path).partition("\n")[0].split():
        name, _, value = word.partition("=")
        if name == "total" and value.isdigit():
            return float(value)
    return None


def _is_one_cpu(name: str) -> bool:
    return name.startswith("cpu") and name[3:].isdigit()
