"""The machine: its properties, and the cores that other programs use during a measurement."""

from __future__ import annotations

import os
import platform
from pathlib import Path
from time import monotonic

import psutil

__all__ = ["OtherPrograms", "machine"]


class OtherPrograms:
    """The cores that other programs use since its construction. Figures of a busy machine cannot be compared."""

    def __init__(self) -> None:
        self._start_s = monotonic()
        self._busy_s = _busy_s()

    def cores(self, own_s: float) -> float:
        """Return the cores in use so far, less `own_s`, the processor seconds of the measured processes."""
        return max(0.0, (_busy_s() - self._busy_s - own_s) / (monotonic() - self._start_s))


def machine() -> dict[str, object]:
    """Return the properties of the machine that figures depend on."""
    return {
        "processor": _processor(),
        "cores": os.cpu_count(),
        "system": f"{platform.system()} {platform.release()}",
        "python": f"{platform.python_implementation()} {platform.python_version()}",
    }


def _busy_s() -> float:
    times = psutil.cpu_times()
    return sum(times) - times.idle - getattr(times, "iowait", 0.0)


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()
