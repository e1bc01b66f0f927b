"""What the components of a run have written down: counts over time, and their last words."""

from __future__ import annotations

import json
from array import array
from bisect import bisect_left
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

__all__ = ["BenchError", "CountOverTime", "Records"]


class BenchError(Exception):
    """A run failed, stalled, or counted wrongly: its figures mean nothing."""


@dataclass(frozen=True, slots=True)
class CountOverTime:
    """How many tuples a task had at which monotonic second, in order."""

    times_s: tuple[float, ...]
    counts: tuple[int, ...]

    def at(self, time_s: float) -> float:
        """The count at a time, between two notes as on a straight line.

        Raises:
            BenchError: when the notes do not reach that far.
        """
        after = bisect_left(self.times_s, time_s)
        if after == len(self.times_s):
            msg = f"no count at {time_s:.3f} s: the notes end at {max(self.times_s, default=0):.3f} s"
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
        """Per task that has noted anything yet."""
        return [_read_log(path) for path in sorted(self.folder.glob(f"{component}-*.log"))]

    def total_at(self, component: str, time_s: float) -> float:
        """What all tasks of a component had had at that time."""
        return sum(task.at(time_s) for task in self.counts(component))

    def last_note_s(self, component: str, tasks: int) -> float:
        """Up to when all tasks of a component have noted something; 0 before each of them has."""
        counts = self.counts(component)
        all_noted = len(counts) == tasks and all(task.times_s for task in counts)  # a file comes first
        return min(task.times_s[-1] for task in counts) if all_noted else 0.0

    def last_words(self, component: str) -> list[object]:
        """What the tasks of a component concluded."""
        files = sorted(self.folder.glob(f"{component}-*.json"))
        return [json.loads(path.read_text(encoding="utf-8")) for path in files]

    def latencies(self, component: str) -> list[tuple[float, float]]:
        """``(due, late)`` of every tuple that came, in seconds."""
        values = array("d")
        for path in sorted(self.folder.glob(f"{component}-*.latency")):
            values.frombytes(path.read_bytes())
        return list(zip(values[::2], values[1::2], strict=True))

    def check(self, source: str, last: str, per_round: dict[str, int]) -> int:
        """Compares what came with what was sent: `per_round` for each round of each task; how many came in all.

        Raises:
            BenchError: when any count differs.
        """
        rounds = sum(word for word in self.last_words(source) if isinstance(word, int))
        counted: Counter[str] = Counter()
        for word in self.last_words(last):
            if isinstance(word, dict):
                counted.update(word)
        expected = Counter({key: count * rounds for key, count in per_round.items()})
        if counted != expected or not rounds:
            wrong = sum(counted[key] != expected[key] for key in counted | expected)
            msg = f"{wrong} of {len(expected)} counts are wrong: {counted.total()} came, {expected.total()} were sent"
            raise BenchError(msg)
        return counted.total()


def _read_log(path: Path) -> CountOverTime:
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    pairs = [line.split() for line in lines if line.endswith("\n")]
    return CountOverTime(tuple(float(time) for time, _ in pairs), tuple(int(count) for _, count in pairs))
