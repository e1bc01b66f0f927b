"""Back pressure: which tasks are culprits, and which local spouts they throttle. Pure.

A stream manager reports its culprits to its peers. Each stream manager knows from the plan which of its spouts feed a
culprit, directly or through bolts. A task stays a culprit as long as any stream manager reports it. Reports end when
the reporting incarnation leaves the plan, or when it opens a new session and reports its present culprits again. So no
process that dies can throttle a spout for ever.
"""

from __future__ import annotations

from dataclasses import dataclass

from heron.api.definition import ComponentKind
from heron.planner.physical_plan import PlanIndex

__all__ = ["BackPressure", "Culprits", "PressureChanged", "Reporter", "SpoutChange"]


@dataclass(frozen=True, slots=True)
class PressureChanged:
    """A task became a culprit, or stopped being one after `duration_s`."""

    task_id: int
    on: bool
    duration_s: float = 0.0


class Culprits:
    """The culprits of this stream manager: since when, and for how long in total. Times are monotonic seconds."""

    __slots__ = ("_since", "_total_s")

    def __init__(self) -> None:
        self._since: dict[int, float] = {}
        self._total_s: dict[int, float] = {}

    def update(self, congested: frozenset[int], now_s: float) -> tuple[PressureChanged, ...]:
        """Takes the tasks that are congested now; returns the changes since the last call."""
        changes = []
        for task_id in sorted(congested - self._since.keys()):
            self._since[task_id] = now_s
            changes.append(PressureChanged(task_id, True))
        for task_id in sorted(self._since.keys() - congested):
            duration_s = now_s - self._since.pop(task_id)
            self._total_s[task_id] = self._total_s.get(task_id, 0.0) + duration_s
            changes.append(PressureChanged(task_id, False, duration_s))
        return tuple(changes)

    def present(self) -> frozenset[int]:
        """The tasks that are culprits now."""
        return frozenset(self._since)

    def totals_s(self, now_s: float) -> dict[int, float]:
        """For how long each task has been a culprit so far."""
        totals = dict(self._total_s)
        for task_id, since_s in self._since.items():
            totals[task_id] = totals.get(task_id, 0.0) + now_s - since_s
        return totals


@dataclass(frozen=True, slots=True)
class Reporter:
    """One incarnation of a stream manager."""

    container_id: int
    incarnation: int


@dataclass(frozen=True, slots=True)
class SpoutChange:
    """A culprit starts or stops to throttle a spout task."""

    task_id: int
    culprit: int
    on: bool


class BackPressure:
    """All reported culprits, and the local spouts that feed each of them."""

    def __init__(self, own: Reporter, *, all_spouts: bool = False) -> None:
        """With `all_spouts`, a culprit throttles every local spout, not only those that feed it."""
        self._own = own
        self._all_spouts = all_spouts
        self._reporters: dict[int, set[Reporter]] = {}
        self._feeders: dict[int, frozenset[int]] = {}
        self._throttled: dict[int, frozenset[int]] = {}
        self._changed = False

    def set_plan(self, index: PlanIndex, *, throttles: bool) -> None:
        """Applies a plan. Without `throttles` no spout is throttled, because tuples are dropped instead."""
        container_id = self._own.container_id
        local = {
            task.task_id
            for task in index.plan.tasks
            if task.container_id == container_id
            and index.plan.topology.component(task.component).kind is ComponentKind.SPOUT
        }
        feeders = {
            name: frozenset(local if self._all_spouts else local & index.ancestors(name))
            for name in {task.component for task in index.plan.tasks}
        }
        self._feeders = {task.task_id: feeders[task.component] for task in index.plan.tasks} if throttles else {}
        for task_id in self._reporters.keys() - index.tasks.keys():
            del self._reporters[task_id]
        self._changed = True

    def report(self, task_id: int, reporter: Reporter, *, on: bool) -> None:
        """Notes that a stream manager reports a task as a culprit, or no longer does."""
        reporters = self._reporters.setdefault(task_id, set())
        (reporters.add if on else reporters.discard)(reporter)
        if not reporters:
            del self._reporters[task_id]
        self._changed = True

    def report_own(self, task_id: int, *, on: bool) -> None:
        """Notes the same for this stream manager."""
        self.report(task_id, self._own, on=on)

    def forget(self, reporter: Reporter) -> None:
        """Drops the reports of an incarnation that is gone or opens a new session."""
        for task_id in [each for each, reporters in self._reporters.items() if reporter in reporters]:
            self.report(task_id, reporter, on=False)

    def is_reported_by(self, container_id: int, task_id: int) -> bool:
        """Whether the stream manager of that container reports the task as a culprit."""
        return any(each.container_id == container_id for each in self._reporters.get(task_id, ()))

    def own_culprits(self) -> tuple[int, ...]:
        """The culprits that this stream manager reports itself."""
        return tuple([task_id for task_id, reporters in self._reporters.items() if self._own in reporters])

    def culprits_of(self, task_id: int) -> tuple[int, ...]:
        """The culprits that throttle this local spout, as of the last `take_changes`."""
        return tuple([culprit for culprit, feeders in self._throttled.items() if task_id in feeders])

    def take_changes(self) -> tuple[SpoutChange, ...]:
        """The changes to announce to local spouts since the last call."""
        if not self._changed:
            return ()
        self._changed = False
        throttled = {culprit: feeders for culprit in self._reporters if (feeders := self._feeders.get(culprit))}
        before, self._throttled = self._throttled, throttled
        none: frozenset[int] = frozenset()
        return tuple(
            SpoutChange(task_id, culprit, task_id in throttled.get(culprit, none))
            for culprit in sorted(before.keys() | throttled.keys())
            for task_id in sorted(before.get(culprit, none) ^ throttled.get(culprit, none))
        )
