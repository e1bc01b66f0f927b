"""What was decided is compared with the plan and the configuration that there are now."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import cast

import pytest

from heron.planner.packing_plan import NO_RESOURCE, ContainerPlan, InstancePlan, PackingPlan
from heron.spi.health_values import Action, ActionKind, ComponentShape, TopologyShape
from heron.spi.scheduler import ContainerStatus, JobStatus, SchedulerState
from heron.state_nodes.execution_state import ExecutionState
from heron_cli.launch.update import TopologyUpdate
from heron_cli.topologies.environment import Environment, ProfileChoice
from heron_cli.topologies.running.remote_topology import RemoteTopology
from heron_health_manager.managing.carrier import Carrier, PlannedAction
from heron_health_manager.managing.recovery import INTERRUPTED, is_current


def plan_of(containers: int) -> PackingPlan:
    """One task in each container."""
    placed = [InstancePlan("split", task, task - 1, NO_RESOURCE) for task in range(1, containers + 1)]
    return PackingPlan(
        "plan-1", tuple(ContainerPlan(each.task_id, (each,), NO_RESOURCE) for each in placed), containers
    )


@pytest.mark.parametrize(("containers", "is_done"), [(2, False), (3, True)])
def test_the_containers_tell_whether_an_update_was_begun(containers: int, is_done: bool) -> None:
    """An update of containers alone changes no number of tasks."""
    places = {task: 1 + task % containers for task in range(1, 7)}
    shape = TopologyShape("model", (ComponentShape("split", "bolt", places),))
    assert is_current(Action(ActionKind.UPDATE, "spread", containers=3, containers_before=2), shape) is is_done


def test_changed_values_end_a_decision_about_them() -> None:
    """What an operator has set meanwhile is not overwritten."""
    key = "topology.max.spout.pending"
    action = Action(ActionKind.CONFIGURE, "raise", settings={"lines": {key: 20}}, settings_before={"lines": {key: 10}})
    assert PlannedAction(action, settings={("lines", key): 10}).changed() == ""
    assert PlannedAction(action, settings={("lines", key): None}).changed() == ""
    assert PlannedAction(action).changed() == ""
    changed = PlannedAction(action, settings={("lines", key): 15}).changed()
    assert changed == f"{key} of lines was changed meanwhile: it is 15"


def test_changed_containers_end_a_decision_about_them() -> None:
    """The plan has three containers, and the decision is about two."""
    packing = plan_of(3)
    update = TopologyUpdate("model", packing, packing, {})
    action = Action(ActionKind.UPDATE, "spread", containers=3, containers_before=2)
    assert PlannedAction(action, update).changed() == "the plan was changed meanwhile: it has 3 containers, not 2"
    assert PlannedAction(replace(action, containers_before=3), update).changed() == ""


class Begun(RemoteTopology):
    """A topology with an update under way; it notes the requests."""

    def __init__(self) -> None:
        self.name = "model"
        self.withdrawn: list[str] = []
        self._run = ExecutionState(
            "model", "model-1", 0.0, "somebody", "here", "local", "", "run", "logs", attached=False
        )
        self._client = None

    def withdraw_update(self, reason: str) -> None:
        """Note it."""
        self.withdrawn.append(reason)


@pytest.mark.parametrize(("present", "withdrawn"), [((0, 1), [INTERRUPTED]), ((0, 1, 2), [])])
def test_an_update_is_given_up_if_the_scheduler_was_not_asked(present: tuple[int, ...], withdrawn: list[str]) -> None:
    """Without container 2, the process that began the update has died. With it, the new tasks only start slowly."""
    containers = tuple(ContainerStatus(each, running=False, attempts=0) for each in present)
    job = JobStatus(SchedulerState.RUNNING, containers, "model-1")
    scheduler = SimpleNamespace(capabilities=frozenset({"update"}), status=lambda _: job)
    environment = cast("Environment", SimpleNamespace(scheduler=scheduler))
    topology = Begun()
    Carrier(environment, ProfileChoice("local"), lambda _: topology).give_up({1, 2})
    assert topology.withdrawn == withdrawn
