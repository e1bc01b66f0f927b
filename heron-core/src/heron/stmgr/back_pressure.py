"""Whom a culprit's back pressure holds back: the spouts of this container that feed it. Pure.

Every stream manager hears of every culprit, from itself and from its peers, and knows from the plan which spouts feed
it, over however many bolts. A task is a culprit as long as anyone says so; what a stream manager said is forgotten when
that incarnation of it leaves the plan or begins a new session, in which it says again what still holds. So nothing
that dies can hold a spout for ever (design D6).
"""

from __future__ import annotations

from dataclasses import dataclass

from heron.api.definition import ComponentKind
from heron.planner.physical_plan import PlanIndex

__all__ = ["BackPressure", "Reporter", "SpoutChange"]


@dataclass(frozen=True, slots=True)
class Reporter:
    """One incarnation of a stream manager."""

    container_id: int
    incarnation: int


@dataclass(frozen=True, slots=True)
class SpoutChange:
    """A spout task begins or ceases to be held back on account of a culprit."""

    task_id: int
    culprit: int
    on: bool


class BackPressure:
    """The culprits and the local spouts that feed each of them."""

    def __init__(self, own: Reporter, *, all_spouts: bool = False) -> None:
        self._own = own
        self._all_spouts = all_spouts
        self._reporters: dict[int, set[Reporter]] = {}
        self._feeders: dict[int, frozenset[int]] = {}
        self._held: dict[int, frozenset[int]] = {}
        self._changed = False

    def set_plan(self, index: PlanIndex, *, holds: bool) -> None:
        """Takes a plan; with `holds` False (tuples are dropped instead) no spout is held back."""
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
        self._feeders = {task.task_id: feeders[task.component] for task in index.plan.tasks} if holds else {}
        for task_id in self._reporters.keys() - index.tasks.keys():
            del self._reporters[task_id]
        self._changed = True

    def report(self, task_id: int, reporter: Reporter, *, on: bool) -> None:
        """A stream manager says that a task is a culprit, or is none any more."""
        reporters = self._reporters.setdefault(task_id, set())
        (reporters.add if on else reporters.discard)(reporter)
        if not reporters:
            del self._reporters[task_id]
        self._changed = True

    def report_own(self, task_id: int, *, on: bool) -> None:
        """The same, of this stream manager."""
        self.report(task_id, self._own, on=on)

    def forget(self, reporter: Reporter) -> None:
        """That incarnation of a stream manager is gone, or begins anew."""
        for task_id in [each for each, reporters in self._reporters.items() if reporter in reporters]:
            self.report(task_id, reporter, on=False)

    def says(self, container_id: int, task_id: int) -> bool:
        """Whether the stream manager of that container says that the task is a culprit."""
        return any(each.container_id == container_id for each in self._reporters.get(task_id, ()))

    def own_culprits(self) -> tuple[int, ...]:
        """What this stream manager says itself, for a peer that has not heard it."""
        return tuple([task_id for task_id, reporters in self._reporters.items() if self._own in reporters])

    def culprits_of(self, task_id: int) -> tuple[int, ...]:
        """The culprits that hold back this local spout, as far as `take_changes` has told of them."""
        return tuple([culprit for culprit, feeders in self._held.items() if task_id in feeders])

    def take_changes(self) -> tuple[SpoutChange, ...]:
        """What spouts must be told since the last time."""
        if not self._changed:
            return ()
        self._changed = False
        held = {culprit: feeders for culprit in self._reporters if (feeders := self._feeders.get(culprit))}
        before, self._held = self._held, held
        none: frozenset[int] = frozenset()
        return tuple(
            SpoutChange(task_id, culprit, task_id in held.get(culprit, none))
            for culprit in sorted(before.keys() | held.keys())
            for task_id in sorted(before.get(culprit, none) ^ held.get(culprit, none))
        )
