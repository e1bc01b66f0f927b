"""A watch belongs to one run, and reads the plans again only when they may have changed."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field, replace
from typing import cast

import pytest

from heron.errors import StateError
from heron.ipc.documents.status import TaskStatus, TopologyStatus, UpdateStatus
from heron.planner.packing_plan import NO_RESOURCE, ContainerPlan, PackingPlan
from heron.planner.physical_plan import PlanUpdate, UpdatePhase
from heron_cli.topologies.running.remote_topology import RemoteTopology
from heron_cli.topologies.running.topology_plans import TopologyPlans
from heron_health_manager.managing.topology_watch import TopologyWatch
from heron_health_manager.observing.observing import SampleReader
from heron_testing.builders import physical_plan, spout, topology

STATUS = TopologyStatus("words", "words-1", "running", 0.0, plan_version=1)


@dataclass
class Answers:
    """What a topology manager and the state manager answer."""

    state: TopologyStatus = STATUS
    reads: int = 0
    asked: list[list[str]] = field(default_factory=list)
    name: str = "words"
    planned: TopologyPlans = field(default_factory=lambda: plans(1))

    def read_task_metrics(self, names: list[str], _: SampleReader) -> None:
        """Nothing was measured."""
        self.asked.append(names)

    def status(self) -> TopologyStatus:
        return self.state

    def plans(self) -> TopologyPlans:
        self.reads += 1
        return self.planned


def plans(version: int, tasks: int = 1) -> TopologyPlans:
    definition = topology(spout("lines", parallelism=tasks))
    physical = replace(physical_plan(definition, {"lines": tuple(range(1, tasks + 1))}), version=version)
    return TopologyPlans(definition, PackingPlan("plan-1", (ContainerPlan(1, (), NO_RESOURCE),)), physical)


def watch_of(answers: Answers, metrics: Collection[str] = ()) -> TopologyWatch:
    return TopologyWatch(cast("RemoteTopology", answers), "words-1", {}, metrics)


def test_another_run_is_not_observed() -> None:
    """Its plan and its rates would be judged by the decisions of the run before."""
    answers = Answers()
    watch = watch_of(answers)
    watch.look()
    answers.state = replace(STATUS, topology_id="words-2")
    with pytest.raises(StateError, match="another run of topology 'words' has begun: words-2"):
        watch.look()


def test_an_update_that_waits_for_its_tasks_is_seen_with_all_containers() -> None:
    """Data is not routed to the new tasks yet, so the shape of the topology does not have theirs."""
    answers = Answers()
    answers.state = replace(STATUS, update=UpdateStatus(1, "prepare", "plan-2", (2,), (), "container 2"))
    physical = answers.planned.physical
    assert physical is not None
    first = physical.tasks[0]
    tasks = (first, replace(first, task_id=2, component_index=1, container_id=2))
    update = PlanUpdate(1, UpdatePhase.PREPARE, "plan-2", added=(2,))
    answers.planned = replace(answers.planned, physical=replace(physical, tasks=tasks, update=update))
    plan = watch_of(answers).look().plan
    assert (plan.prepared, plan.containers, plan.shape.containers()) == (
        "plan-2",
        frozenset({1, 2}),
        (1,),
    )


def test_plans_are_read_again_when_their_version_changes() -> None:
    """The state manager is asked rarely; a plan that was read a moment too early is read again."""
    answers = Answers()
    watch = watch_of(answers)
    watch.look()
    watch.look()
    assert answers.reads == 1
    answers.state = replace(STATUS, plan_version=2)
    watch.look()
    answers.planned = plans(2)
    watch.look()
    watch.look()
    assert answers.reads == 3


@pytest.mark.parametrize(
    ("tasks", "names", "asked"),
    [
        (1, ["a", "b", "c"], [["a", "b", "c"]]),
        (4_001, ["a", "b", "c", "d"], [["a", "d"], ["b"], ["c"]]),
        (10_000, ["a", "b"], [["a"], ["b"]]),
        (10_000, [], [[]]),
    ],
)
def test_metrics_of_a_large_topology_are_asked_for_by_parts(
    tasks: int, names: list[str], asked: list[list[str]]
) -> None:
    """Each part has some of the names; without names, one question is about all."""
    answers = Answers()
    answers.planned = plans(1, tasks)
    watch = watch_of(answers, names)
    watch.look()
    answers.asked.clear()
    watch.look()
    assert answers.asked == asked


def test_restarts_are_remembered_between_two_looks() -> None:
    """Whatever the look-back window of a policy is."""
    answers = Answers()
    watch = watch_of(answers)
    for restarts, recent in ((4, {}), (5, {1: 1}), (6, {1: 2})):
        answers.state = replace(STATUS, tasks=(TaskStatus(1, "lines", 1, "running", 1, restarts=restarts),))
        assert watch.look().observation.recent_restarts == recent
