"""What follows from a round: which decision is recorded, and whether its action is carried out. Pure.

The shell writes the records of a step before it carries anything out. So after a death at any moment the history tells
what was begun: an action under way is judged by its effect, and never begun again. Before a step, `recovery` compares
what was begun with the plan.
"""

from __future__ import annotations

import enum
from collections.abc import Sequence
from dataclasses import dataclass, replace

from heron.spi.health_values import Action, ActionKind, Decision, DecisionState, Diagnosis
from heron_health_manager.diagnosing.policy_round import Round
from heron_health_manager.managing.safety import Limits, Verdict, age_s_of, effect_of, permission

__all__ = ["Mode", "Step", "is_advised", "next_step"]

_UNDER_WAY = DecisionState.STARTED
_OTHERS = 2.0  # times the wait for an effect: then another policy closes a decision whose policy does not answer


class Mode(enum.Enum):
    """What the health manager may do."""

    ADVISE = "advise"
    """It records what it would do. The default."""
    ACT = "act"
    """It carries actions out."""
    PAUSED = "paused"
    """It carries actions out, and a person has asked it to wait: it advises, and undoes an action later."""


@dataclass(frozen=True, slots=True)
class Step:
    """The records to write, each new or in place of that with its number; then the action to carry out, if any."""

    records: tuple[Decision, ...] = ()
    action: Action | None = None


def next_step(history: Sequence[Decision], found: Round, policy: str, mode: Mode, now_s: float, limits: Limits) -> Step:
    """What to do after a round of that policy, at `now_s` (wall clock); `history` is ordered by number."""
    for decision in history:
        if decision.state is _UNDER_WAY:
            others_s = _OTHERS * limits.effect_s
            if decision.policy != policy and age_s_of(decision, now_s, others_s) < others_s:
                return Step()  # only the policy that took it measures its effect
            return _judge(history, decision, found, mode, now_s, limits)
    return _decide(history, found, policy, mode, now_s, limits)


def _judge(
    history: Sequence[Decision], decision: Decision, found: Round, mode: Mode, now_s: float, limits: Limits
) -> Step:
    state = effect_of(decision, found.measurements, now_s, limits)
    if state is decision.state:
        return Step()
    judged = replace(decision, state=state)
    if state is DecisionState.UNMEASURED:
        judged = replace(judged, reason=f"{decision.reason}; its effect could not be measured")
    undone = _undo(decision) if state is DecisionState.INEFFECTIVE else None
    if undone is None:
        return Step((judged,))
    if mode is Mode.PAUSED:
        return Step()
    reason = f"undoes decision {decision.number}, whose effect did not come within {limits.effect_s:.0f} s"
    acts = mode is Mode.ACT
    undo = replace(
        decision,
        number=_next_number(history),
        at_s=now_s,
        action=undone,
        state=_UNDER_WAY if acts else DecisionState.ADVISED,
        reason=reason,
        base="",
        target="",
        undoes=decision.number,
        carried_out_at_s=None,
    )
    return Step((judged, undo), undone if acts else None)


def _undo(decision: Decision) -> Action | None:
    """The action that puts the former values back; None for an action that cannot be undone, or is an undo."""
    action = decision.action
    if action.kind is ActionKind.CONFIGURE and not decision.undoes:
        return _former_settings(action)
    if action.kind is not ActionKind.UPDATE or not (action.before or action.containers_before) or decision.undoes:
        return None
    shown = [f"{name} {action.parallelism[name]} -> {tasks}" for name, tasks in action.before.items()]
    if action.containers_before:
        shown.append(f"containers {action.containers} -> {action.containers_before}")
    return Action(
        ActionKind.UPDATE,
        f"put the plan back: {', '.join(shown)}",
        parallelism=action.before,
        before=action.parallelism,
        containers=action.containers_before,
        containers_before=action.containers,
    )


def _former_settings(action: Action) -> Action:
    before, after = action.settings_before, action.settings
    shown = ", ".join(
        f"{key} of {component} {after[component][key]:,} -> {value:,}"
        for component, values in before.items()
        for key, value in values.items()
    )
    return Action(ActionKind.CONFIGURE, f"put the configuration back: {shown}", settings=before, settings_before=after)


def _decide(history: Sequence[Decision], found: Round, policy: str, mode: Mode, now_s: float, limits: Limits) -> Step:
    """Acts on the most confident finding that permits it, and records advice about the others once."""
    records: list[Decision] = []
    number = _next_number(history)
    for finding in found.findings:
        action = finding.action
        if action is None:
            continue
        allowed = permission(history, finding.diagnosis, action, found.measurements.shape, now_s, limits)
        if allowed.verdict is Verdict.WAIT:
            break
        acts = allowed.verdict is Verdict.ACT and mode is Mode.ACT
        state = _UNDER_WAY if acts else DecisionState.ADVISED
        decision = Decision(number, now_s, policy, finding.diagnosis, action, state, allowed.reason)
        if acts:
            return Step((*records, decision), action)
        if not is_advised(history, finding.diagnosis, action):
            records.append(decision)
            number += 1
    return Step(tuple(records))


def is_advised(history: Sequence[Decision], diagnosis: Diagnosis, action: Action) -> bool:
    """Whether the newest record about the same diagnosis advises the same: people need not read it again."""
    for decision in reversed(history):
        if (decision.diagnosis.name, decision.diagnosis.subject) == (diagnosis.name, diagnosis.subject):
            advised = decision.state is DecisionState.ADVISED
            return advised and decision.action.text == action.text
    return False


def _next_number(history: Sequence[Decision]) -> int:
    return max((each.number for each in history), default=0) + 1
