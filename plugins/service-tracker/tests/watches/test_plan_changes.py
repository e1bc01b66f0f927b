"""The differences between two versions of the plans, and the versions that the tracker keeps."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace

import httpx
import pytest

from heron.planner.key_owners import KeyOwners
from heron.planner.packing_plan import ContainerPlan, InstancePlan, PackingPlan, Resource
from heron.planner.physical_plan import CheckpointPlan, RegionRestore, TaskPlan, TopologyState
from heron_cli.client import TopologyEntry, TopologyPlans
from heron_service_tracker.http.access import Access
from heron_service_tracker.http.address import Address
from heron_service_tracker.http.application import application
from heron_service_tracker.observed.observed import VERSIONS_KEPT
from heron_service_tracker.watches.observations import Observations
from heron_service_tracker.watches.plan_changes import plan_changes

VERSIONS = "/api/v1/clusters/near/topologies/words/plan-versions"


@pytest.fixture
def plans(observations: Observations) -> TopologyPlans:
    """Plans with one spout task and one bolt task in container 1."""
    found = observations.topology("near", "words").plans
    assert found is not None
    return found


def with_version(plans: TopologyPlans, version: int, **changes: object) -> TopologyPlans:
    """The plans with another physical plan."""
    assert plans.physical is not None
    return replace(plans, physical=replace(plans.physical, version=version, **changes))  # type: ignore[arg-type]


def test_a_task_that_is_added_moved_or_removed_is_named(plans: TopologyPlans) -> None:
    """A person sees at once what an update has done."""
    tasks = (TaskPlan(1, "lines", 0, 2), TaskPlan(3, "count", 0, 1))
    assert plan_changes(plans, with_version(plans, 2, tasks=tasks)) == (
        "task 1 of lines moved from container 1 to container 2",
        "task 3 of count was added to container 1",
        "task 2 of count left container 1",
    )


def test_parallelism_containers_and_their_size_are_compared(plans: TopologyPlans) -> None:
    """The packing plan changes before the physical plan has any new task."""
    lines, count = plans.definition.components
    definition = replace(plans.definition, components=(lines, replace(count, parallelism=2)))
    resource = Resource(1.0, 512, 1024)
    packing = PackingPlan(
        "p2",
        (
            ContainerPlan(1, plans.packing.containers[0].instances, Resource(4.0, 2**30, 2**31)),
            ContainerPlan(2, (InstancePlan("count", 3, 1, resource),), resource),
        ),
    )
    now = replace(with_version(plans, 2, topology=definition), packing=packing)
    assert plan_changes(plans, now) == (
        "count has 2 tasks, before 1",
        "container 1 asks for 4 cores, 1,024 MiB of memory and 2,048 of disk, "
        "before 2 cores, 0 MiB of memory and 0 of disk",
        "container 2 was added",
    )
    assert "container 2 was removed" in plan_changes(now, plans)


def test_a_setting_is_named_and_its_value_is_not(plans: TopologyPlans) -> None:
    """A value may be a password."""
    lines, count = plans.definition.components
    changed = replace(lines, config={**lines.config, "db.password": "geheim"})
    definition = replace(plans.definition, components=(changed, count), config={"topology.name": "words", "limit": 7})
    found = plan_changes(plans, with_version(plans, 2, topology=definition))
    assert found == ("the setting limit of the topology changed", "the setting db.password of lines changed")


def test_state_leader_owners_and_processes_are_compared(plans: TopologyPlans) -> None:
    """Each of them makes a new version, and a version without an explanation would be a riddle."""
    assert plans.physical is not None
    (manager,) = plans.physical.stmgrs
    now = with_version(
        plans,
        2,
        epoch=2,
        state=TopologyState.PAUSED,
        key_owners={"count": KeyOwners(((2, 1024),))},
        stmgrs=(replace(manager, incarnation=2, host="h2"), replace(manager, container_id=2)),
    )
    assert plan_changes(plans, now) == (
        "the state is paused, before running",
        "another topology manager leads, epoch 2",
        "key groups of count have other owners",
        "the stream manager of container 1 is another process, on h2",
        "the stream manager of container 2 registered, on h1",
    )
    assert plan_changes(plans, with_version(plans, 2)) == ()


def test_a_thousand_changes_are_bounded(plans: TopologyPlans) -> None:
    """The number that is left out is there."""
    tasks = tuple(TaskPlan(number, "count", number, 1) for number in range(1, 1001))
    found = plan_changes(plans, with_version(plans, 2, tasks=tasks))
    assert (len(found), found[-1]) == (50, "and 949 more changes")


def test_versions_are_listed_newest_first_and_each_once(observations: Observations, plans: TopologyPlans) -> None:
    """The tracker reads plans again while they lag behind the status."""
    for version, state in ((1, "paused"), (2, "running"), (2, "running"), (3, "paused")):
        observations.put_plans("near", "words", with_version(plans, version, state=TopologyState(state)))
    found = get(observations, VERSIONS).json()
    assert [(each["version"], each["changes"]) for each in found["items"]] == [
        (3, ["the state is paused, before running"]),
        (2, ["the state is running, before paused"]),
        (1, []),
    ]
    assert get(observations, f"{VERSIONS}?limit=1").json()["items"] == found["items"][:1]
    assert get(observations, f"{VERSIONS}?limit=0").status_code == 400


def test_a_hundred_checkpoints_hide_no_change(observations: Observations, plans: TopologyPlans) -> None:
    """Each orders one version and completes with another; a change of people stays in the list, and is an event."""
    checkpoints = CheckpointPlan(source="words-0/3")
    observations.put_plans("near", "words", with_version(plans, 2, state=TopologyState.PAUSED, checkpoints=checkpoints))
    for version in range(3, 203):
        checkpoints = CheckpointPlan(version, version - 1, source="words-0/3")
        now = with_version(plans, version, state=TopologyState.PAUSED, checkpoints=checkpoints)
        observations.put_plans("near", "words", now)
    topology = observations.topology("near", "words")
    assert [each.version for each in topology.versions] == [1, 2]
    assert [(each.kind, each.text) for each in topology.events[1:]] == [
        ("plan-changed", "plan 2: the state is paused, before running")
    ]
    restored = replace(checkpoints, restores=1, source="words-1/201")
    of_region = replace(restored, regions=(RegionRestore("lines", 2, ""),))
    steps = [with_version(plans, 300, checkpoints=each) for each in (checkpoints, restored, of_region)]
    assert plan_changes(*steps[:2]) == ("all tasks return to checkpoint words-1/201",)
    assert plan_changes(*steps[1:]) == ("the region of lines returns to the empty state",)


def test_old_versions_and_those_of_another_run_are_forgotten(
    observations: Observations, plans: TopologyPlans, make_entry: Callable[..., TopologyEntry]
) -> None:
    """Memory stays bounded, and two runs of a name are not compared."""
    for version in range(2, 200):
        observations.put_plans("near", "words", with_version(plans, version, epoch=version))
    assert len(observations.topology("near", "words").versions) == VERSIONS_KEPT
    observations.put_list("near", [replace(make_entry(), id="words-2")])
    observations.put_plans("near", "words", with_version(plans, 1))
    assert [each.changes for each in observations.topology("near", "words").versions] == [()]


def get(observations: Observations, path: str) -> httpx.Response:
    """Ask once."""

    async def ask() -> httpx.Response:
        app = application(observations, Access(Address("127.0.0.1", 1)), asyncio.Event())
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app=app), base_url="http://localhost") as client:
            return await client.get(path)

    return asyncio.run(ask())
