"""Which suites run, in which order, and which wait: decisions over plain values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from statistics import median

from verify.inputs import OWN
from verify.keys import Key
from verify.records import Record

__all__ = ["MOST_BEHIND", "Standing", "State", "Turn", "standing"]

MOST_BEHIND = 50
"""Commits: each suite has run for code that is at most as old."""

_OWN = {group.value for group in OWN}
_RULES = "how suites are run"
_GUESSED_S = 60.0  # of a suite that has no record, where no other has one


class State(Enum):
    """What the record of a suite is worth for the present tree."""

    NEVER = "never run"
    CHANGED = "own changed"
    CORE_CHANGED = "core changed"
    VALID = "valid"


@dataclass(frozen=True, slots=True)
class Standing:
    """A suite with the state of its record, the groups of inputs that changed since, and how many commits ago."""

    suite: str
    state: State
    changed: tuple[str, ...]
    record: Record | None
    behind: int = 0

    @property
    def reason(self) -> str:
        """For one line of output."""
        if self.record is None:
            return "no green run is recorded"
        if self.state is State.VALID:
            return f"green on these inputs, {self.record.when}"
        ago = f"{self.behind} commits ago, after {self.record.when}"
        return f"changed {ago}: {', '.join(self.changed)}"

    @property
    def overdue(self) -> bool:
        """Whether it has to run now: a suite that never ran is a debt, without a date."""
        return self.record is not None and self.state is not State.VALID and self.behind > MOST_BEHIND


def standing(suite: str, key: Key, record: Record | None, behind: int = 0) -> Standing:
    """Compares the present key of a suite with its record. Only an equal key makes the record valid."""
    if record is None:
        return Standing(suite, State.NEVER, (), None)
    if record.key == key.value:
        return Standing(suite, State.VALID, (), record)
    names = sorted(key.groups.keys() | record.inputs.keys())
    changed = tuple(name for name in names if key.groups.get(name) != record.inputs.get(name))
    state = State.CORE_CHANGED if changed and _OWN.isdisjoint(changed) else State.CHANGED
    return Standing(suite, state, changed or (_RULES,), record, behind)


class Turn:
    """Hands out suites to run. `budget_s` limits when the last ones are expected to end.

    The order: suites that are overdue; those with a change in inputs of their own; those that never ran; those of which
    only the core changed. Of each, the one that is furthest behind comes first. At last one valid suite, the one with
    the oldest record that fits. With `everything`, all suites run, the longest first and whatever the budget.
    """

    def __init__(
        self, standings: Sequence[Standing], budget_s: float | None = None, *, everything: bool = False
    ) -> None:
        seconds = [each.record.seconds for each in standings if each.record]
        self._guessed_s = median(seconds) if seconds else _GUESSED_S
        self._budget_s = float("inf") if budget_s is None or everything else budget_s
        stale = [each for each in standings if everything or each.state is not State.VALID]
        self._stale = sorted(stale, key=lambda each: -self._seconds(each)) if everything else sorted(stale, key=_order)
        rest = [each for each in standings if each.state is State.VALID and not everything]
        self._valid = sorted(rest, key=_when)

    def take(self, elapsed_s: float) -> Standing | None:
        """The next suite to run now, `elapsed_s` after the first one began; None when nothing is left that fits."""
        if found := self._first_fitting(self._stale, elapsed_s):
            self._stale.remove(found)
        elif found := self._first_fitting(self._valid, elapsed_s):
            self._valid.clear()
        return found

    def _first_fitting(self, waiting: list[Standing], elapsed_s: float) -> Standing | None:
        return next((each for each in waiting if elapsed_s + self._seconds(each) <= self._budget_s), None)

    def _seconds(self, each: Standing) -> float:
        return each.record.seconds if each.record else self._guessed_s

    @property
    def left(self) -> list[Standing]:
        """The stale suites that were not handed out."""
        return list(self._stale)


_STATES = [State.CHANGED, State.NEVER, State.CORE_CHANGED, State.VALID]


def _order(each: Standing) -> tuple[bool, int, int, str]:
    return not each.overdue, 0 if each.overdue else _STATES.index(each.state), -each.behind, _when(each)


def _when(each: Standing) -> str:
    return each.record.when if each.record else ""
