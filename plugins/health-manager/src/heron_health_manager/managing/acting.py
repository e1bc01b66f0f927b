"""Carries out what was decided: plans it, records it, and only then begins. So nothing is begun twice.

A plan that was changed under the decision, a state manager that does not answer, and a second writer end the attempt
without a change; the next round decides again. An action whose outcome is unknown stays under way, and `recovery` and
its effect tell what became of it.
"""

from __future__ import annotations

import enum
import logging
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from typing import Protocol

from heron.errors import HeronError, RefusedError, StateConflictError, StateError, UnreachableError
from heron.spi.health_values import Action, Decision, DecisionState
from heron.state_nodes.health_records import HealthRecords
from heron_health_manager.managing.carrier import PlannedAction
from heron_health_manager.managing.pilot import is_advised
from heron_health_manager.managing.record_book import KeptRecords, RecordBook
from heron_health_manager.managing.safety import Limits, too_many_containers

__all__ = ["Attempt", "Carries", "attempt", "begin"]

_OPEN = frozenset({DecisionState.STARTED, DecisionState.ABANDONED})

_log = logging.getLogger(__name__)


class Carries(Protocol):
    """What `Carrier` does."""

    def plan(self, action: Action) -> PlannedAction:
        """Plan an action; changes nothing."""
        ...

    def carry_out(self, planned: PlannedAction) -> None:
        """Carry it out."""
        ...

    def give_up(self, containers: Collection[int]) -> None:
        """Withdraw the update under way if nobody has asked for one of these containers."""
        ...


class Attempt(enum.Enum):
    """How an attempt to act ended."""

    CARRIED_OUT = "carried out"
    FAILED = "failed"
    UNKNOWN = "unknown"
    """It was begun, and whether it was completed will be seen."""
    REFUSED = "refused"
    """It was recorded as advice, because of a bound."""
    NOTHING = "nothing"
    """Nothing was changed, and nothing recorded: decide again."""


def attempt(
    carrier: Carries,
    book: RecordBook,
    kept: KeptRecords,
    records: Sequence[Decision],
    action: Action,
    limits: Limits,
    now_s: Callable[[], float],
) -> tuple[Attempt, str]:
    """Carry an action out whose decision is the last one of `records`; return how that ended, and why.

    `now_s` returns the seconds of the records.

    Raises:
        StateError: when the state manager does not answer; nothing was begun.
        UnreachableError: when the topology does not answer; nothing was begun.
    """
    *others, decision = records
    try:
        planned = carrier.plan(action)
    except (StateError, UnreachableError):
        raise
    except HeronError as error:
        failed = replace(decision, state=DecisionState.FAILED, reason=str(error))
        book.write(kept, kept.records.with_decisions(*others, failed))
        return Attempt.FAILED, str(error)
    if why := planned.changed():
        return Attempt.NOTHING, why
    update = planned.update
    if update and (why := too_many_containers(len(update.before.containers), len(update.after.containers), limits)):
        if not is_advised(kept.records.decisions, decision.diagnosis, action):
            others.append(replace(decision, state=DecisionState.ADVISED, reason=why))
        if others:
            book.write(kept, kept.records.with_decisions(*others))
        return Attempt.REFUSED, why
    return begin(carrier, book, kept, (*others, decision), planned, now_s)


def begin(
    carrier: Carries,
    book: RecordBook,
    kept: KeptRecords,
    records: Sequence[Decision],
    planned: PlannedAction,
    now_s: Callable[[], float],
) -> tuple[Attempt, str]:
    """Record a planned action, whose decision is the last one, and then carry it out.

    Raises:
        StateError: when it could not be recorded; nothing was begun.
    """
    *others, decision = records
    started = replace(decision, state=DecisionState.STARTED, base=planned.base, target=planned.target)
    try:
        book.write(kept, kept.records.with_decisions(*others, started))
    except StateConflictError:
        return Attempt.NOTHING, "somebody else has decided meanwhile"
    _log.info("decision %d begins: %s (%s)", started.number, planned.action.text, started.reason)
    try:
        carrier.carry_out(planned)
    except (StateError, UnreachableError) as error:
        _log.warning("decision %d: its outcome is not known yet: %s", started.number, error)
        return Attempt.UNKNOWN, str(error)
    except HeronError as error:
        # The topology manager refuses an update of a plan that is not the present one; it is decided again.
        state = DecisionState.ABANDONED if isinstance(error, RefusedError) else DecisionState.FAILED
        _record_end(book, replace(started, state=state, reason=str(error)))
        return Attempt.FAILED, str(error)
    _log.info("decision %d was carried out", started.number)
    _record_end(book, replace(started, carried_out_at_s=now_s()))
    return Attempt.CARRIED_OUT, ""


def _record_end(book: RecordBook, decision: Decision) -> None:
    """Record how an action ended, unless another process has judged it meanwhile.

    A failure is logged: the record says that it was begun.
    """

    def ended(records: HealthRecords) -> HealthRecords:
        open_ones = {each.number for each in records.decisions if each.state in _OPEN}
        return records.with_decisions(decision) if decision.number in open_ones else records

    try:
        book.change(ended)
    except StateError as error:
        _log.warning("decision %d: its end could not be recorded: %s", decision.number, error)
