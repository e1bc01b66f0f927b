"""Whether a proposed action may be carried out now. Pure: everything follows from the records of earlier decisions.

So a health manager that died knows after its restart what is under way, what was tried, and what did not help.

- One action at a time, and a cool-down after each, until its effect can be seen.
- An action without its expected effect is not tried again for that diagnosis for a while, which doubles each time
  (Dhalion's blacklist).
- A component that is made larger and smaller again and again is left alone: a person decides. So is a cause that comes
  back after each restart or rebalance.
"""

from __future__ import annotations

import enum
import itertools
from collections.abc import Sequence
from dataclasses import dataclass

from heron.spi.health_section import HealthSection
from heron.spi.health_values import Action, ActionKind, Decision, DecisionState, Diagnosis, Measurements, TopologyShape

__all__ = ["Limits", "Permission", "Verdict", "age_s_of", "effect_of", "limits_of", "permission", "too_many_containers"]

_CARRIED_OUT = frozenset(
    {DecisionState.EFFECTIVE, DecisionState.INEFFECTIVE, DecisionState.UNMEASURED, DecisionState.FAILED}
)
_RECENT = _CARRIED_OUT | {DecisionState.ABANDONED, DecisionState.SUPERSEDED}  # a cool-down follows
_LONGEST_S = 86_400.0
_UP, _DOWN = 1, -1


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of what the health manager does by itself, in seconds of the wall clock.

    An effect is awaited for `effect_s`. `turns` changes of direction of one component within `oscillation_s` are an
    oscillation. Within the same time a restart or a rebalance is done `repeats` times for one cause.
    `max_containers` bounds the containers with tasks; None without a bound.
    """

    cool_down_s: float = 60.0
    effect_s: float = 120.0
    blacklist_s: float = 600.0
    oscillation_s: float = 1800.0
    turns: int = 2
    repeats: int = 2
    least_confidence: float = 0.7
    max_containers: int | None = None


def limits_of(section: HealthSection) -> Limits:
    """The limits that the section of a profile sets."""
    return Limits(
        cool_down_s=section.cool_down_s,
        effect_s=section.effect_s,
        blacklist_s=section.blacklist_s,
        least_confidence=section.least_confidence,
        max_containers=section.max_containers,
    )


class Verdict(enum.Enum):
    """What may happen with an action."""

    ACT = "act"
    WAIT = "wait"
    ADVISE = "advise"


@dataclass(frozen=True, slots=True)
class Permission:
    """The verdict, and its reason for people."""

    verdict: Verdict
    reason: str


def permission(
    history: Sequence[Decision],
    diagnosis: Diagnosis,
    action: Action,
    shape: TopologyShape,
    now_s: float,
    limits: Limits,
) -> Permission:
    """Whether an action may be carried out at `now_s` (wall clock); `history` has earlier decisions, by number."""
    if (held := _held(history, shape, now_s, limits)) is not None:
        return Permission(Verdict.WAIT, held)
    advised = (
        _no_action(action)
        or _doubt(diagnosis, limits)
        or too_many_containers(len(shape.containers()), action.containers, limits)
        or _loses(diagnosis, action, shape)
        or _blacklisted(history, diagnosis, action, now_s, limits)
        or _oscillating(history, action, shape, now_s, limits)
        or _repeated(history, diagnosis, action, now_s, limits)
    )
    if advised:
        return Permission(Verdict.ADVISE, advised)
    return Permission(Verdict.ACT, f"{diagnosis.name} of {diagnosis.subject}: {diagnosis.evidence[0]}")


def effect_of(decision: Decision, measurements: Measurements, now_s: float, limits: Limits) -> DecisionState:
    """The state of a decision that was STARTED: whether its expected effect is there, or will not come any more.

    Nothing is judged while the plan changes, or before the action is complete; if nobody has seen that, after
    `effect_s`. A value that is not measured then says nothing about the action. Without an expectation the action
    counts as effective after `effect_s`.
    """
    age_s = age_s_of(decision, now_s, limits.effect_s)
    expected = decision.action.expected
    unseen = decision.carried_out_at_s is None and age_s < limits.effect_s
    if measurements.shape.changing or unseen:
        return DecisionState.STARTED
    if expected is None:
        return DecisionState.EFFECTIVE if age_s >= limits.effect_s else DecisionState.STARTED
    value = measurements.value(expected.measurement, expected.subject)
    if value is not None and expected.holds(value):
        return DecisionState.EFFECTIVE
    if age_s < limits.effect_s:
        return DecisionState.STARTED
    return DecisionState.UNMEASURED if value is None else DecisionState.INEFFECTIVE


def age_s_of(decision: Decision, now_s: float, span_s: float) -> float:
    """Seconds since a decision was carried out; since it was made, if nobody has seen that.

    A clock that was set back by more than the span makes it old, not eternal.
    """
    age_s = now_s - (decision.at_s if decision.carried_out_at_s is None else decision.carried_out_at_s)
    return span_s if age_s < -span_s else max(0.0, age_s)


def _held(history: Sequence[Decision], shape: TopologyShape, now_s: float, limits: Limits) -> str | None:
    if shape.changing:
        return "an update is under way"
    for decision in history:
        if decision.state is DecisionState.STARTED:
            return f"decision {decision.number} is under way: {decision.action.text}"
    recent = [each for each in history if each.state in _RECENT]
    if not recent:
        return None
    newest = _newest(recent, now_s, limits.cool_down_s)
    left_s = limits.cool_down_s - age_s_of(newest, now_s, limits.cool_down_s)
    shown = f"decision {newest.number} is {newest.state.value}; {left_s:.0f} s of its cool-down left"
    return shown if left_s > 0 else None


def _newest(history: Sequence[Decision], now_s: float, span_s: float) -> Decision:
    """The decision of the least age. Advice keeps its number when a person approves it, so numbers do not tell."""
    return min(history, key=lambda each: age_s_of(each, now_s, span_s))


def _no_action(action: Action) -> str:
    return "only a person can do this" if action.kind is ActionKind.ADVISE else ""


def _doubt(diagnosis: Diagnosis, limits: Limits) -> str:
    if diagnosis.confidence >= limits.least_confidence:
        return ""
    return f"the confidence {diagnosis.confidence:.0%} is below {limits.least_confidence:.0%}"


def _loses(diagnosis: Diagnosis, action: Action, shape: TopologyShape) -> str:
    """A restart of a task that does its work, however slowly, must not cost tuples without a person's consent."""
    if not shape.loses or action.kind is not ActionKind.RESTART or diagnosis.name == "stuck-task":
        return ""
    return f"delivery is at most once, so it loses the tuples that are in container {action.container_id} then"


def too_many_containers(before: int, after: int, limits: Limits) -> str:
    """Why a plan has too many containers; "" if it has not. A topology that is too large may become smaller."""
    most = limits.max_containers
    if most is None or after <= max(most, before):
        return ""
    return f"the topology would have {after} containers, and the limit is {most}"


def _blacklisted(
    history: Sequence[Decision], diagnosis: Diagnosis, action: Action, now_s: float, limits: Limits
) -> str:
    failed = (DecisionState.INEFFECTIVE, DecisionState.FAILED)
    tried = [each for each in history if each.state in failed and _is_same(each, diagnosis, action)]
    if not tried:
        return ""
    span_s = min(_LONGEST_S, limits.blacklist_s * 2.0 ** min(len(tried) - 1, 60))
    newest = _newest(tried, now_s, span_s)
    left_s = span_s - age_s_of(newest, now_s, span_s)
    if left_s <= 0:
        return ""
    return f"decision {newest.number} tried this without the expected effect; it is tried again in {left_s:.0f} s"


def _is_same(decision: Decision, diagnosis: Diagnosis, action: Action) -> bool:
    """Whether a decision had the same diagnosis and kind of action, or made the same plan for another component."""
    if decision.action.kind is not action.kind:
        return False
    known = decision.diagnosis
    of_subject = (known.name, known.subject) == (diagnosis.name, diagnosis.subject)
    return of_subject or (bool(action.parallelism) and decision.action.parallelism == action.parallelism)


def _oscillating(
    history: Sequence[Decision], action: Action, shape: TopologyShape, now_s: float, limits: Limits
) -> str:
    span_s = limits.oscillation_s
    oldest_first = sorted(history, key=lambda each: -age_s_of(each, now_s, span_s))
    for component in shape.components:
        wanted = action.parallelism.get(component.name)
        if wanted is None or wanted == component.parallelism:
            continue
        sizes = [
            each.action.parallelism[component.name]
            for each in oldest_first
            if each.state in _CARRIED_OUT
            and component.name in each.action.parallelism
            and age_s_of(each, now_s, span_s) < span_s
        ]
        if _turns([*sizes, wanted]) >= limits.turns:
            shown = ", ".join(map(str, sizes))
            return f"{component.name} was changed up and down ({shown}) and would be changed to {wanted} now"
    return ""


def _repeated(history: Sequence[Decision], diagnosis: Diagnosis, action: Action, now_s: float, limits: Limits) -> str:
    """An action that leaves nothing behind helps for a while only, where the cause comes back."""
    if action.kind not in (ActionKind.RESTART, ActionKind.REBALANCE):
        return ""
    done = [
        str(each.number)
        for each in history
        if each.state in _CARRIED_OUT
        and _is_same(each, diagnosis, action)
        and age_s_of(each, now_s, limits.oscillation_s) < limits.oscillation_s
    ]
    if len(done) < limits.repeats:
        return ""
    return f"{diagnosis.name} of {diagnosis.subject} has come back after decisions {', '.join(done)}"


def _turns(sizes: Sequence[int]) -> int:
    """How often a sequence of sizes changes its direction."""
    steps = [_UP if later > earlier else _DOWN for earlier, later in itertools.pairwise(sizes) if later != earlier]
    return sum(one != other for one, other in itertools.pairwise(steps))
