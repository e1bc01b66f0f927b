"""Check that the memory of each process stays constant while a topology runs at full speed."""

from __future__ import annotations

import contextlib
import statistics
import threading
from collections.abc import Sequence
from dataclasses import dataclass

import psutil

from chaos.chaos_run import ChaosRun

__all__ = ["Memory", "table", "watch_memory"]

_WARM_UP_S = 60.0  # processes reach their working size after some millions of tuples
_WINDOWS = 10
_SAMPLES = 24  # samples in each window: the content of buffers changes within seconds
_MIB = 2**20


@dataclass(frozen=True, slots=True)
class Memory:
    """The memory of one process: the median of its unique bytes (USS) in each tenth of the time."""

    name: str
    pid: int
    medians: tuple[float, ...]

    @property
    def growth(self) -> float:
        """Return the largest difference from the first value, as a fraction of it; negative for a decrease."""
        return max((each / self.medians[0] - 1 for each in self.medians[1:]), key=abs, default=0.0)


def watch_memory(chaos_run: ChaosRun, minutes: float) -> tuple[Memory, ...]:
    """Watch the processes for `minutes`, after a first minute. A replaced process counts as a new one.

    Raises:
        ChaosError: when the run ends.
    """
    medians: dict[tuple[str, int], list[float]] = {}
    pause = threading.Event()
    pause.wait(_WARM_UP_S)
    for _ in range(_WINDOWS):
        sampled: dict[tuple[str, int], list[int]] = {}
        for _ in range(_SAMPLES):
            pause.wait(minutes * 60 / _WINDOWS / _SAMPLES)
            chaos_run.check_alive()
            for name, process in chaos_run.every_process().items():
                with contextlib.suppress(psutil.NoSuchProcess):
                    sampled.setdefault((name, process.pid), []).append(process.memory_full_info().uss)
        for key, found in sampled.items():
            medians.setdefault(key, []).append(statistics.median(found))
    return tuple(Memory(name, pid, tuple(found)) for (name, pid), found in medians.items())


def table(memories: Sequence[Memory]) -> str:
    """Return a line for each process: MiB in each tenth, and the largest difference from the first."""
    lines = [f"{'process':<16} {'MiB of its own, by tenth of the time':<70} {'change':>7}"]
    for each in memories:
        sizes = " ".join(f"{size / _MIB:6.1f}" for size in each.medians)
        lines.append(f"{each.name:<16} {sizes:<70} {each.growth:>+7.1%}")
    return "\n".join(lines)
