"""Plans that wait for a store that is away."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from heron.api.definition import TopologyDefinition
from heron.errors import StateUnavailableError
from heron.ipc.reactor import Reactor
from heron.ipc.socket import Hub, SocketContext
from heron.ipc.status import LeaderStatus
from heron.planner.packing_plan import PackingPlan
from heron.planner.physical_plan import PhysicalPlan, TopologyState
from heron.spi.statemgr import NodeKind
from heron.state_nodes.plans import decode_physical_plan, encode_plan
from heron.tmanager.containers import Containers
from heron.tmanager.plan_publisher import PlanPublisher
from heron.tmanager.state_store import StateStore
from heron_statemgr_localfs.state_manager import LocalFsOptions, LocalFsStateManager
from heron_testing.fake_clock import FakeClock


class Away(LocalFsStateManager):
    """Can be away; counts how often a plan was to be written meanwhile."""

    away = False
    tried = 0

    def set(self, kind: NodeKind, topology: str, value: bytes, *, expected: int | None = None) -> int:
        """As it is, unless it is away."""
        if self.away:
            self.tried += 1
            msg = "the store is away"
            raise StateUnavailableError(msg)
        return super().set(kind, topology, value, expected=expected)


class World:
    """A desk of the leader of epoch 1, whose plans nobody hears of."""

    def __init__(
        self, root: Path, definition: TopologyDefinition, packing: PackingPlan, clock: FakeClock, hub: Hub
    ) -> None:
        self.clock, self.definition = clock, definition
        self.state = Away(LocalFsOptions(str(root)))
        self.state.set(NodeKind.TOPOLOGY, "wc", encode_plan(definition))
        self.state.set(NodeKind.PACKING_PLAN, "wc", encode_plan(packing))
        store = StateStore(self.state, "wc", "wc-1")
        store.take_over(LeaderStatus(0, 1, "here", 1, 0.0))
        self.reactor = Reactor(clock)
        self.waits: list[str] = []
        self.publisher = PlanPublisher(self.reactor, store, Containers(hub, 1), self.waits.append)

    def plan(self, version: int) -> PhysicalPlan:
        """A plan without anybody in it."""
        return PhysicalPlan(version, 1, "wc-1", self.definition, TopologyState.RUNNING, (), ())

    def pass_time(self, seconds: float) -> None:
        """Has what is due called."""
        self.clock.advance(seconds)
        self.reactor.run_once(0.0)


@pytest.fixture
def world(
    tmp_path: Path, definition: TopologyDefinition, packing: PackingPlan, fake_clock: FakeClock
) -> Iterator[World]:
    """Its store is there at first."""
    sockets = SocketContext()
    world = World(tmp_path / "state", definition, packing, fake_clock, sockets.hub(f"ipc://{tmp_path}/tmanager"))
    yield world
    sockets.close()
    world.state.close()


def test_a_plan_that_is_asked_for_again_is_not_tried_more_often(world: World) -> None:
    """Whoever repeats a command while the store is away does not add a chain of attempts each time."""
    world.state.away = True
    plan = world.plan(1)
    for _ in range(5):
        world.publisher.publish(plan)
    world.state.tried = 0
    for _ in range(4):
        world.pass_time(0.5)
    assert world.state.tried == 4
    assert all("physical plan 1 cannot be written" in each for each in world.waits)


def test_the_newest_plan_alone_is_written_when_the_store_is_back(world: World) -> None:
    """What waits for a plan is called when the one that overtook it is written."""
    called: list[str] = []
    world.state.away = True
    world.publisher.publish(world.plan(1))
    world.publisher.when_written(lambda: called.append("written"))
    world.publisher.publish(world.plan(2))
    world.pass_time(0.5)
    assert called == []
    world.state.away = False
    world.pass_time(0.5)
    assert (called, world.waits[-1]) == (["written"], "")
    node = world.state.get(NodeKind.PHYSICAL_PLAN, "wc")
    assert node is not None
    assert decode_physical_plan(node.value, "test") == world.plan(2)
    world.pass_time(5.0)
    assert node == world.state.get(NodeKind.PHYSICAL_PLAN, "wc")
