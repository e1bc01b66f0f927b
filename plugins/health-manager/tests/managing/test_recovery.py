"""What became of an action that was begun, by the plan that the topology has now."""

from __future__ import annotations

from dataclasses import replace

import pytest

from heron.spi.health_values import (
    Action,
    ActionKind,
    ComponentShape,
    Decision,
    DecisionState,
    Diagnosis,
    Subject,
    TopologyShape,
)
from heron_health_manager.managing.recovery import PlanFacts, recovered

NOW_S = 1_000_000.0
CAUSE = Diagnosis("over-provisioned", Subject("split"), 0.8, ("it idles",))
SMALLER = Action(ActionKind.UPDATE, "split 3 -> 2", parallelism={"split": 2}, before={"split": 3})
GIVEN_UP = Decision(4, NOW_S - 20.0, "ds2", CAUSE, SMALLER, DecisionState.ABANDONED, "why", "plan-3", "plan-2")


def facts(tasks: int) -> PlanFacts:
    """A plan in which `split` has this number of tasks."""
    split = ComponentShape("split", "bolt", dict.fromkeys(range(1, tasks + 1), 1))
    return PlanFacts(TopologyShape("t", (split,)), f"plan-{tasks}")


def test_a_late_request_brings_its_decision_back() -> None:
    """Its effect is awaited from now, and the history says what happened."""
    (late,) = recovered([GIVEN_UP], facts(2), NOW_S)
    assert (late.state, late.carried_out_at_s) == (DecisionState.STARTED, NOW_S)
    assert late.reason == "why; its request arrived late"


def test_an_update_whose_end_failed_is_under_way() -> None:
    """The scheduler could not remove the empty containers, and the plan is the new one."""
    failed = replace(GIVEN_UP, state=DecisionState.FAILED, reason="container 3 cannot be removed")
    assert [*recovered([failed], facts(3), NOW_S)] == []
    (begun,) = recovered([failed], facts(2), NOW_S)
    assert (begun.state, begun.carried_out_at_s) == (DecisionState.STARTED, NOW_S)
    assert begun.reason == "container 3 cannot be removed; the plan was changed all the same"


@pytest.mark.parametrize(
    "history",
    [
        [replace(GIVEN_UP, at_s=NOW_S - 7200.0)],
        [GIVEN_UP, replace(GIVEN_UP, number=5, state=DecisionState.EFFECTIVE)],
        [replace(GIVEN_UP, number=3, at_s=NOW_S - 5.0, state=DecisionState.EFFECTIVE), GIVEN_UP],
    ],
    ids=["hours later", "decided again", "approved since"],
)
def test_the_plan_of_somebody_else_is_no_late_request(history: list[Decision]) -> None:
    """The id of a plan follows from its content alone."""
    assert [*recovered(history, facts(2), NOW_S)] == []
