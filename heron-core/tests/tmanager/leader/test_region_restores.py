"""Restores of a topology that has two parts without a stream between them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from heron.api.api_constants import (
    TOPOLOGY_RELIABILITY_MODE,
    TOPOLOGY_STATEFUL_CHECKPOINT_INTERVAL_SECONDS,
    TopologyReliabilityMode,
)
from heron.ipc.documents.status import LeaderStatus
from heron.planner.packing_plan import ContainerPlan, InstancePlan, PackingPlan, Resource
from heron.planner.physical_plan import CheckpointPlan, RegionRestore
from heron.planner.regions import regions_of
from heron.tmanager.leader.checkpoint_progress import CheckpointEvent
from heron.tmanager.leader.topology_state import Takeover
from heron_testing.builders import bolt, spout, stream, subscription, topology
from heron_testing.fake_clock import FakeClock
from parts.leading import INTERVAL_S, SETTLE_S, Leading

RESOURCE = Resource(1.0, 2**30, 2**30)
ALL = (1, 2, 3, 4)


@pytest.fixture
def leading(fake_clock: FakeClock) -> Leading:
    """Tasks 1 and 3, 2 and 4 are connected; 1 and 2 are in container 1, 3 and 4 in container 2."""
    definition = topology(
        spout("red", stream("n")),
        spout("blue", stream("n")),
        bolt("red-count", subscription("red")),
        bolt("blue-count", subscription("blue")),
        config={
            TOPOLOGY_RELIABILITY_MODE: TopologyReliabilityMode.EFFECTIVELY_ONCE,
            TOPOLOGY_STATEFUL_CHECKPOINT_INTERVAL_SECONDS: INTERVAL_S,
        },
    )
    names = [each.name for each in definition.components]
    instances = [InstancePlan(name, number, 0, RESOURCE) for number, name in enumerate(names, 1)]
    containers = (ContainerPlan(1, tuple(instances[:2]), RESOURCE), ContainerPlan(2, tuple(instances[2:]), RESOURCE))
    leader = LeaderStatus(1, 77, "here", 5, 1_700_000_100.0)
    found = Leading(Takeover(definition, PackingPlan("p", containers, 4), "t-1", leader, 1_700_000_000.0), fake_clock)
    found.register(1)
    found.register(2)
    found.works(*ALL)
    return found


def test_a_death_restores_what_is_connected_to_it(leading: Leading) -> None:
    """The other tasks go on, and the next checkpoint is one of all."""
    leading.take(*ALL)
    leading.send_heartbeat(2, 1, 1, {3: 1})
    leading.pass_time(SETTLE_S)
    assert [leading.restores_of(each) for each in ALL] == [1, 0, 1, 0]
    assert leading.ordered.regions == (RegionRestore("red", 1, "t-1/1", leading.version),)
    assert (leading.ordered.restores, leading.ordered.since) == (0, 0)
    leading.works(1, 3)
    assert leading.take(*ALL) == 2
    assert leading.ordered.complete == 2
    assert (leading.status.restores, leading.status.source) == (1, "t-1/1")


def test_each_region_has_its_newest_restore(leading: Leading) -> None:
    """One restore has one number; a later one of the other region leaves the first alone."""
    leading.take(*ALL)
    leading.send_heartbeat(1, 1, 1, {1: 1})
    leading.pass_time(SETTLE_S)
    since = leading.version
    leading.send_heartbeat(2, 1, 1, {4: 1})
    leading.pass_time(SETTLE_S)
    first, second = RegionRestore("red", 1, "t-1/1", since), RegionRestore("blue", 2, "t-1/1", leading.version)
    assert leading.ordered.regions == (first, second)
    leading.send_heartbeat(2, 1, 2, {3: 1, 4: 1})
    leading.pass_time(SETTLE_S)
    assert [leading.restores_of(each) for each in ALL] == [3, 2, 3, 2]


@pytest.mark.parametrize("by_task", [{0: 1}, {3: 1, 4: 1}, {9: 1}, None])
def test_a_loss_that_may_be_of_any_task_restores_all(leading: Leading, by_task: dict[int, int] | None) -> None:
    """A loss of a stream manager, or of a task that the plan does not have any more."""
    leading.send_heartbeat(1, 1, 1, {1: 1})
    leading.pass_time(SETTLE_S)
    leading.send_heartbeat(2, 1, sum((by_task or {0: 1}).values()), by_task)
    leading.pass_time(SETTLE_S)
    assert [leading.restores_of(each) for each in ALL] == [2, 2, 2, 2]
    assert leading.ordered.regions == ()
    assert (leading.ordered.restores, leading.ordered.since) == (2, leading.version)


def test_another_stream_manager_restores_the_regions_of_its_tasks(leading: Leading) -> None:
    """Here both have a task in each container."""
    leading.register(2, incarnation=2)
    leading.pass_time(SETTLE_S)
    assert [leading.restores_of(each) for each in ALL] == [1, 1, 1, 1]


def test_a_new_leader_keeps_the_restores_of_regions(leading: Leading) -> None:
    """It also ignores reports of tasks that have not carried theirs out."""
    leading.take(*ALL)
    leading.send_heartbeat(2, 1, 1, {3: 1})
    leading.pass_time(SETTLE_S)
    before = leading.ordered
    following = leading.successor()
    following.register(1)
    following.register(2, losses=1)
    following.pass_time(SETTLE_S)
    assert following.ordered == before
    assert [following.restores_of(each) for each in ALL] == [1, 0, 1, 0]


def test_an_update_restores_the_regions_that_it_changes(leading: Leading) -> None:
    """A loss in another region that was reported meanwhile is restored too."""
    packing = leading.packing
    added = InstancePlan("blue-count", 5, 1, RESOURCE)
    second = replace(packing.containers[1], instances=(*packing.containers[1].instances, added))
    larger = replace(packing, id="q", containers=(packing.containers[0], second), last_task_id=5)
    leading.carry_out(leading.leader.update_asked(larger, packing.id))
    leading.works(5)
    number = leading.ordered.number
    leading.report(CheckpointEvent.SAVED, number, *ALL)
    leading.carry_out(leading.leader.manifest_stored(number))
    leading.report(CheckpointEvent.COMMITTED, number, *ALL)
    assert [leading.restores_of(each) for each in (*ALL, 5)] == [0, 1, 0, 1, 1]
    assert leading.phase is None


def test_restores_that_wait_for_one_plan_are_all_ordered_by_it() -> None:
    """No plan can be made while a container is missing, and losses may be reported meanwhile."""
    waiting = CheckpointPlan(2, 2, 1, "t-1/2", 0, (), (RegionRestore("red", 2, "t-1/2"), RegionRestore("blue", 3, "")))
    ordered = waiting.ordered_by(7)
    assert (ordered.since, [each.since for each in ordered.regions]) == (7, [7, 7])
    assert ordered.ordered_by(8) == ordered
    assert CheckpointPlan(2, 2).ordered_by(7).since == 0, "there was no restore"


def test_components_are_in_one_region_if_streams_connect_them() -> None:
    """Directly or through others, also through a common consumer."""
    joined = topology(
        spout("a"),
        spout("b"),
        spout("c"),
        bolt("d", subscription("c")),
        bolt("e", subscription("a"), subscription("b")),
    )
    assert regions_of(joined) == {"a": "a", "b": "a", "c": "c", "d": "c", "e": "a"}
