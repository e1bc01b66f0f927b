"""The records that the components of a run write: counts over time, and final results."""

from __future__ import annotations

import json
from array import array
from bisect import bisect_left
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

__all__ = ["BenchError", "CountOverTime", "Records"]


class BenchError(Exception):
    """A run failed, stalled or counted wrongly, so its figures mean nothing."""


@dataclass(frozen=True, slots=True)
class CountOverTime:
    """The tuple counts of a task and the monotonic seconds at which it recorded them, in order."""

    times_s: tuple[float, ...]
    counts: tuple[int, ...]

    def at(self, time_s: float) -> float:
        """Return the count at a time, interpolated linearly between two records.

        Raises:
            BenchError: when the records end before that time.
        """
        after = bisect_left(self.times_s, time_s)
        if after == len(self.times_s):
            msg = f"no count at {time_s:.3f} s: the records end at {max(self.times_s, default=0):.3f} s"
            raise BenchError(msg)
        if after == 0:
            return float(self.counts[0] if self.times_s[0] == time_s else 0)
        before = after - 1
        step_s = self.times_s[after] - self.times_s[before]
        part = (time_s - self.times_s[before]) / step_s
        return self.counts[before] + part * (self.counts[after] - self.counts[before])


class Records:
    """The records in the folder of a run."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def counts(self, component: str) -> list[CountOverTime]:
        """Return the counts of each task that has recorded any."""
        return [_read_log(path) for path in sorted(self.folder.glob(f"{component}-*.log"))]

    def total_at(self, component: str, time_s: float) -> float:
        """Return the number of tuples of all tasks of a component at that time."""
        return sum(task.at(time_s) for task in self.counts(component))

    def last_note_s(self, component: str, tasks: int) -> float:
        """Return the time up to which all tasks of a component have recorded counts; 0 if a task has none."""
        counts = self.counts(component)
        all_noted = len(counts) == tasks and all(task.times_s for task in counts)  # a file may have no line yet
        return min(task.times_s[-1] for task in counts) if all_noted else 0.0

    def has_begun(self, component: str, tasks: int) -> bool:
        """Whether all tasks of a component have recorded counts, and one of them has received a tuple.

        Bolts record at ticks, so on a busy machine the first records are those of a topology whose spouts still start.
        """
        last_s = self.last_note_s(component, tasks)
        return last_s > 0 and self.total_at(component, last_s) > 0

    def results(self, component: str) -> list[object]:
        """Return the final results of the tasks of a component."""
        files = sorted(self.folder.glob(f"{component}-*.json"))
        return [json.loads(path.read_text(encoding="utf-8")) for path in files]

    def latencies(self, component: str) -> list[tuple[float, float]]:
        """Return ``(due, late)`` of every received tuple, in seconds."""
        values = array("d")
        for path in sorted(self.folder.glob(f"{component}-*.latency")):
            values.frombytes(path.read_bytes())
        return list(zip(values[::2], values[1::2], strict=True))

    def check(self, source: str, last: str, per_round: dict[str, int]) -> int:
        """Compare the received tuples with `per_round` for each sent round, and return the number received.

        Raises:
            BenchError: when a count differs.
        """
        rounds = sum(result for result in self.results(source) if isinstance(result, int))
        counted: Counter[str] = Counter()
        for result in self.results(last):
            if isinstance(result, dict):
                counted.update(result)
        expected = Counter({key: count * rounds for key, count in per_round.items()})
        if counted != expected or not rounds:
            wrong = sum(counted[key] != expected[key] for key in counted | expected)
            msg = f"{wrong} of {len(expected)} counts differ: received {counted.total()}, sent {expected.total()}"
            raise BenchError(msg)
        return counted.total()


def _read_log(path: Path) -> CountOverTime:
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    pairs = [line.split() for line in lines if line.endswith("\n")]
    return CountOverTime(tuple(float(time) for time, _ in pairs), tuple(int(count) for _, count in pairs))
