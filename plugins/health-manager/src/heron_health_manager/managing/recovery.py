"""What became of an action that was begun, by the plan that the topology has now. Pure.

A health manager may die at any moment, so a record says that an action was begun, and not that it was done. An update
is fenced: it names the packing plan that it changes, its base. The topology manager refuses it once that plan has been
replaced. So an update is carried out at most once, and the plan tells whether it was:

- the components have the wanted tasks: it was done, and its effect is awaited from now, if nobody saw its end;
- the plan is still its base: it was not begun, and the decision can be taken again;
- the update waits for containers that nobody has asked the scheduler for: it is withdrawn, and can be decided again;
- the plan is its target, although an error ended it: the error came after the update, so its effect is awaited too;
- anything else: somebody has changed the plan meanwhile, so the effect says nothing and nothing is undone.

A request that a dead health manager had sent may arrive late. Then the plan becomes the target of a decision that was
given up, and the decision is under way again. Ids of packing plans tell only their content, so after some minutes a
person has made that plan. A restart has no fence: once recorded it is never repeated.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from heron.spi.health_values import Action, Decision, DecisionState, TopologyShape
from heron_health_manager.managing.safety import age_s_of

__all__ = ["INTERRUPTED", "PlanFacts", "is_current", "is_prepared", "recovered"]

INTERRUPTED = "the process that began it has ended before it asked the scheduler for containers"
"""The reason with which an update is withdrawn that would wait for them until its time limit."""

_GIVEN_UP = {
    DecisionState.ABANDONED: "its request arrived late",
    DecisionState.FAILED: "the plan was changed all the same",
}
_LATE_S = 600.0  # until a late request has made its plan: twice the time limit of an update


@dataclass(frozen=True, slots=True)
class PlanFacts:
    """The plan now, its id, and the target of the newest update if that was withdrawn, with the reason.

    `prepared` is the target of an update whose new tasks do not all run yet, and `containers` are those of its plan.
    """

    shape: TopologyShape
    packing_id: str
    withdrawn: str = ""
    why: str = ""
    prepared: str = ""
    containers: frozenset[int] = frozenset()


def recovered(history: Sequence[Decision], plan: PlanFacts, now_s: float) -> Iterator[Decision]:
    """Yield the decisions that are not as recorded. None of them is being carried out at `now_s` (wall clock)."""
    if plan.shape.changing:
        return
    for decision in history:
        if not decision.base or decision.base == decision.target:  # it has no fence
            continue
        if decision.state is DecisionState.STARTED:
            state, reason = _state_of_begun(decision, plan)
            if state is not decision.state:
                yield replace(decision, state=state, reason=f"{decision.reason}; {reason}")
            elif decision.carried_out_at_s is None:
                yield replace(decision, carried_out_at_s=now_s)
        elif decision.state in _GIVEN_UP and _came_late(decision, history, plan, now_s):
            reason = f"{decision.reason}; {_GIVEN_UP[decision.state]}"
            yield replace(decision, state=DecisionState.STARTED, reason=reason, carried_out_at_s=now_s)


def is_prepared(history: Sequence[Decision], plan: PlanFacts) -> bool:
    """Whether the update that waits for its new tasks is that of a decision."""
    begun = {each.target for each in history if each.state is DecisionState.STARTED and each.target != each.base}
    return plan.prepared in begun


def _came_late(decision: Decision, history: Sequence[Decision], plan: PlanFacts, now_s: float) -> bool:
    """Whether the plan is that of a decision that was given up lately, and no later decision has the same plan."""
    later = any(
        each.target == decision.target and (each.number > decision.number or each.at_s > decision.at_s)
        for each in history
    )
    lately = age_s_of(decision, now_s, _LATE_S) < _LATE_S
    return plan.packing_id == decision.target and lately and not later


def _state_of_begun(decision: Decision, plan: PlanFacts) -> tuple[DecisionState, str]:
    if is_current(decision.action, plan.shape):
        return decision.state, decision.reason
    if plan.withdrawn == decision.target:
        state = DecisionState.ABANDONED if plan.why == INTERRUPTED else DecisionState.FAILED
        return state, f"the update was withdrawn: {plan.why}"
    if plan.packing_id == decision.base:
        return DecisionState.ABANDONED, "it was not begun, and nothing was changed"
    return DecisionState.SUPERSEDED, "the plan was changed by somebody else meanwhile"


def is_current(action: Action, shape: TopologyShape) -> bool:
    """Whether the plan has the numbers of tasks and of containers that an action wants."""
    now = {each.name: each.parallelism for each in shape.components}
    packed = action.containers in (0, len(shape.containers()))
    return packed and all(now.get(component) == tasks for component, tasks in action.parallelism.items())
