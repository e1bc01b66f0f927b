"""The decisions of a topology's health manager as an answer. Pure."""

from __future__ import annotations

import msgspec

from heron.spi.health_values import Decision, DecisionState
from heron_service_tracker.observed.observed import ObservedTopology

__all__ = ["DecisionItem", "HealthDecisionsAnswer", "decision_items", "health_sentence"]

_OPEN = frozenset({DecisionState.ADVISED, DecisionState.STARTED})
_STATES = {DecisionState.ADVISED: "advises", DecisionState.STARTED: "has begun"}


class DecisionItem(msgspec.Struct, frozen=True):
    """A decision, its cause and its reason.

    `at_s` is wall-clock seconds. `cause` and `subject` say what was found, with a `confidence` from 0 to 1, and
    `evidence` shows it, the strongest first. `kind` is a value of `heron.spi.health_values.ActionKind`; `action`
    says it in words, and `command` does the same by hand ("" if there is none). `reason` says why the decision is in
    its `state`. `undoes` is the number of the decision that it undoes, or 0.
    """

    number: int
    at_s: float
    policy: str
    state: str
    cause: str
    subject: str
    confidence: float
    evidence: tuple[str, ...]
    kind: str
    action: str
    command: str
    reason: str
    undoes: int


class HealthDecisionsAnswer(msgspec.Struct, frozen=True):
    """A page of the decisions, the newest first.

    `mode` is that of the health manager, "" where none has begun. While it is `paused`, it begins nothing. `problem` is
    what keeps it from its work, "" if nothing does.
    """

    mode: str
    paused: bool
    problem: str
    items: tuple[DecisionItem, ...]
    total: int
    next_offset: int | None
    age_s: float
    error: str


def decision_items(topology: ObservedTopology) -> list[DecisionItem]:
    """The decisions, the newest first; none before they were read."""
    decisions = topology.health.decisions if topology.health else ()
    return [_item(each) for each in reversed(decisions)]


def health_sentence(topology: ObservedTopology) -> str:
    """What the health manager wants or does now, and why; "" if that is nothing."""
    records = topology.health
    if records is None or not records.mode:
        return ""
    if records.problem:
        return f"the health manager cannot work: {records.problem}"
    newest = records.decisions[-1] if records.decisions else None
    if newest is None or newest.state not in _OPEN:
        return ""
    found = newest.diagnosis
    what = f"{_STATES[newest.state]}: {newest.action.text}"
    return f"the health manager {what}, because of {found.name} of {found.subject}: {found.evidence[0]}"


def _item(each: Decision) -> DecisionItem:
    found, action = each.diagnosis, each.action
    return DecisionItem(
        each.number,
        each.at_s,
        each.policy,
        each.state.value,
        found.name,
        str(found.subject),
        found.confidence,
        found.evidence,
        action.kind.value,
        action.text,
        action.command,
        each.reason,
        each.undoes,
    )
