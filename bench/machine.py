"""The machine: what it is, and how busy other programs keep it while something is measured."""

from __future__ import annotations

import os
import platform
from pathlib import Path
from time import monotonic

import psutil

__all__ = ["OtherPrograms", "machine"]


class OtherPrograms:
    """How many cores other programs use, from its construction on: figures of a busy machine cannot be compared."""

    def __init__(self) -> None:
        self._start_s = monotonic()
        self._busy_s = _busy_s()

    def cores(self, own_s: float) -> float:
        """Cores in use up to now, less the processor seconds that the measured processes have used."""
        return max(0.0, (_busy_s() - self._busy_s - own_s) / (monotonic() - self._start_s))


def machine() -> dict[str, object]:
    """What figures depend on."""
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
