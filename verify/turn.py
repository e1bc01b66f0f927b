"""Which suites run, in which order, and which wait: decisions over plain values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from verify.inputs import OWN
from verify.keys import Key
from verify.records import Record

__all__ = ["Standing", "State", "Turn", "standing"]

_OWN = {group.value for group in OWN}
_RULES = "how suites are run"


class State(Enum):
    """What the record of a suite is worth for the present tree."""

    NEVER = "no record"
    CHANGED = "changed"
    CORE_CHANGED = "core changed"
    VALID = "valid"


@dataclass(frozen=True, slots=True)
class Standing:
    """A suite with the state of its record and the groups of inputs that changed since."""

    suite: str
    state: State
    changed: tuple[str, ...]
    record: Record | None

    @property
    def reason(self) -> str:
        """For one line of output."""
        if self.record is None:
            return "no green run is recorded"
        if self.state is State.VALID:
            return f"green on these inputs, {self.record.when}"
        return f"changed since {self.record.when}: {', '.join(self.changed)}"


def standing(suite: str, key: Key, record: Record | None) -> Standing:
    """Compares the present key of a suite with its record. Only an equal key makes the record valid."""
    if record is None:
        return Standing(suite, State.NEVER, (), None)
    if record.key == key.value:
        return Standing(suite, State.VALID, (), record)
    names = sorted(key.groups.keys() | record.inputs.keys())
    changed = tuple(name for name in names if key.groups.get(name) != record.inputs.get(name))
    state = State.CORE_CHANGED if changed and _OWN.isdisjoint(changed) else State.CHANGED
    return Standing(suite, state, changed or (_RULES,), record)


class Turn:
    """Hands out suites to run. `budget_s` limits when the last ones that may wait are expected to end.

    The order: suites that have to run, the longest first; then suites of which only the core changed, the oldest record
    first; then one valid suite, the one with the oldest record that fits. With `everything`, all suites have to run.
    """

    def __init__(
        self, standings: Sequence[Standing], budget_s: float | None = None, *, everything: bool = False
    ) -> None:
        self._budget_s = budget_s
        states = {State.NEVER, State.CHANGED} if not everything else set(State)
        self._required = sorted((each for each in standings if each.state in states), key=_seconds, reverse=True)
        rest = sorted((each for each in standings if each.state not in states), key=_when)
        self._core_changed = [each for each in rest if each.state is State.CORE_CHANGED]
        self._valid = [each for each in rest if each.state is State.VALID]

    def take(self, elapsed_s: float) -> Standing | None:
        """The next suite to run now, `elapsed_s` after the first one began; None when nothing is left that fits."""
        if self._required:
            return self._required.pop(0)
        if found := self._first_fitting(self._core_changed, elapsed_s):
            self._core_changed.remove(found)
        elif found := self._first_fitting(self._valid, elapsed_s):
            self._valid.clear()
        return found

    def _first_fitting(self, waiting: list[Standing], elapsed_s: float) -> Standing | None:
        budget_s = float("inf") if self._budget_s is None else self._budget_s
        return next((each for each in waiting if elapsed_s + _seconds(each) <= budget_s), None)

    @property
    def left(self) -> list[Standing]:
        """The stale suites that were not handed out."""
        return self._required + self._core_changed


def _seconds(each: Standing) -> float:
    return each.record.seconds if each.record else float("inf")


def _when(each: Standing) -> str:
    return each.record.when if each.record else ""
