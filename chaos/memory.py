"""Whether the memory of each process stays what it was, while a topology goes on at full speed."""

from __future__ import annotations

import contextlib
import statistics
import threading
from collections.abc import Sequence
from dataclasses import dataclass

import psutil

from chaos.world import World

__all__ = ["Memory", "table", "watch_memory"]

_WARM_UP_S = 60.0  # what a process keeps ready for later is there after some millions of tuples
_WINDOWS = 10
_SAMPLES = 24  # in each window: what is in buffers comes and goes within seconds
_MIB = 2**20


@dataclass(frozen=True, slots=True)
class Memory:
    """Of one process: the median of its own bytes (USS) in each tenth of the time; the first is what it began with."""

    name: str
    pid: int
    medians: tuple[float, ...]

    @property
    def growth(self) -> float:
        """How far it ever was from the first, as a part of that; negative where that was below."""
        return max((each / self.medians[0] - 1 for each in self.medians[1:]), key=abs, default=0.0)


def watch_memory(world: World, minutes: float) -> tuple[Memory, ...]:
    """Watches for so long, from the second minute on. A process that is replaced meanwhile counts as another one.

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
            world.check_alive()
            for name, process in world.every_process().items():
                with contextlib.suppress(psutil.NoSuchProcess):
                    sampled.setdefault((name, process.pid), []).append(process.memory_full_info().uss)
        for key, found in sampled.items():
            medians.setdefault(key, []).append(statistics.median(found))
    return tuple(Memory(name, pid, tuple(found)) for (name, pid), found in medians.items())


def table(memories: Sequence[Memory]) -> str:
    """A line for each process: MiB of each tenth, and how far it ever was from the first."""
    lines = [f"{'process':<16} {'MiB of its own, by tenth of the time':<70} {'change':>7}"]
    for each in memories:
        sizes = " ".join(f"{size / _MIB:6.1f}" for size in each.medians)
        lines.append(f"{each.name:<16} {sizes:<70} {each.growth:>+7.1%}")
    return "\n".join(lines)
