"""Whether tasks with new code work as well as those with the former code: what was counted, compared. Pure.

Counts are compared by tuple, because tasks get different numbers of tuples. A difference counts if it is larger than
what differs between equal tasks: see the limits below.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, fields

__all__ = ["Comparison", "TaskCounts", "compared_health"]

_MORE_SHARE = 0.01  # of all tuples; fewer failures are within the noise of a minute
_LEAST_FAILURES = 3  # two may be of one bad record
_SLOWER = 2.0  # times per tuple; the work of key groups, and the start of a process, differ by less
_LEAST_TUPLES = 100  # for a mean time per tuple
_LEAST_BUSY = 0.05  # of the time; an idle task has hardly any time to compare


@dataclass(frozen=True, slots=True)
class TaskCounts:
    """What one task has done: tuples executed (of a spout: emitted), failed tuples, errors of user code, useful time.

    The useful time is without the time for which the task waited for a processor. `restarts` counts deaths.
    `waiting_bytes` wait for the task now. `seconds` is the time that the counts cover.
    """

    tuples: float = 0.0
    failed: float = 0.0
    errors: float = 0.0
    useful_s: float = 0.0
    restarts: float = 0.0
    waiting_bytes: float = 0.0
    seconds: float = 0.0

    def since(self, before: TaskCounts) -> TaskCounts:
        """What was counted since then; a process that has restarted meanwhile counts from its restart."""
        counted = {
            each.name: now - then if (now := getattr(self, each.name)) >= (then := getattr(before, each.name)) else now
            for each in fields(self)
        }
        return TaskCounts(**counted | {"waiting_bytes": self.waiting_bytes})

    def __add__(self, other: TaskCounts) -> TaskCounts:
        return TaskCounts(*(getattr(self, each.name) + getattr(other, each.name) for each in fields(self)))


@dataclass(frozen=True, slots=True)
class Comparison:
    """One component: what people read, and why its new code is worse ("" if it is not)."""

    component: str
    text: str
    worse: str


def compared_health(
    tasks: Mapping[int, str], counts: Mapping[int, TaskCounts], canaries: Collection[int]
) -> tuple[Comparison, ...]:
    """Compare the canaries of each component with its other tasks; `tasks` are the components by task.

    The other tasks may be of another time: those that the canaries have replaced.
    """
    found = []
    for component in dict.fromkeys(tasks[each] for each in sorted(canaries)):
        own = [task for task, name in tasks.items() if name == component]
        new = _sum(counts, [each for each in own if each in canaries])
        old = _sum(counts, [each for each in own if each not in canaries])
        found.append(Comparison(component, f"{component}: new {_text(new)}; former {_text(old)}", _worse(new, old)))
    return tuple(found)


def _worse(new: TaskCounts, old: TaskCounts) -> str:
    if new.restarts and new.restarts > old.restarts:
        return f"its new code died {new.restarts:g} times"
    if not new.tuples and old.tuples and new.waiting_bytes:
        return "its new code processes nothing, and tuples wait for it"
    for what, count, before in (("failed", new.failed, old.failed), ("raised", new.errors, old.errors)):
        share, former = _share(count, new), _share(before, old)
        if count >= _LEAST_FAILURES and share > former + _MORE_SHARE:
            return f"{share:.1%} of its tuples {what} with the new code, {former:.1%} with the former"
    slow, former_s = _time_per_tuple(new), _time_per_tuple(old)
    if slow is not None and former_s is not None and slow > _SLOWER * former_s and _busy(new) > _LEAST_BUSY:
        return f"a tuple takes {slow * 1e6:,.0f} µs with the new code, {former_s * 1e6:,.0f} µs with the former"
    return ""


def _share(count: float, of: TaskCounts) -> float:
    return count / max(of.tuples, count, 1.0)


def _time_per_tuple(counts: TaskCounts) -> float | None:
    return counts.useful_s / counts.tuples if counts.tuples >= _LEAST_TUPLES else None


def _busy(counts: TaskCounts) -> float:
    return counts.useful_s / counts.seconds if counts.seconds > 0 else 0.0


def _sum(counts: Mapping[int, TaskCounts], tasks: Collection[int]) -> TaskCounts:
    total = TaskCounts()
    for each in tasks:
        total += counts.get(each, TaskCounts())
    return total


def _text(counts: TaskCounts) -> str:
    each_s = _time_per_tuple(counts)
    time = f", {each_s * 1e6:,.0f} µs each, {_busy(counts):.0%} busy" if each_s is not None else ""
    deaths = f", {counts.restarts:g} deaths" if counts.restarts else ""
    return f"{counts.tuples:,.0f} tuples, {counts.failed:,.0f} failed, {counts.errors:,.0f} errors{deaths}{time}"
