"""Publishing plans while the state manager is away."""

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
    """Can be away, and counts the writes that it refuses meanwhile."""

    away = False
    tried = 0

    def set(self, kind: NodeKind, topology: str, value: bytes, *, expected: int | None = None) -> int:
        """Refuse the write while the store is away."""
        if self.away:
            self.tried += 1
            msg = "the store is away"
            raise StateUnavailableError(msg)
        return super().set(kind, topology, value, expected=expected)


class Publishing:
    """A publisher of the leader of epoch 1, without stream managers."""

    def __init__(
        self, root: Path, definition: TopologyDefinition, packing: PackingPlan, clock: FakeClock, hub: Hub
    ) -> None:
        self.clock, self.definition, self.packing = clock, definition, packing
        self.state = Away(LocalFsOptions(str(root)))
        self.state.set(NodeKind.TOPOLOGY, "wc", encode_plan(definition))
        self.state.set(NodeKind.PACKING_PLAN, "wc", encode_plan(packing))
        store = StateStore(self.state, "wc", "wc-1")
        store.take_over(LeaderStatus(0, 1, "here", 1, 0.0))
        self.reactor = Reactor(clock)
        self.waits: list[str] = []
        self.publisher = PlanPublisher(self.reactor, store, Containers(hub, 1), self.waits.append)

    def plan(self, version: int) -> PhysicalPlan:
        """A plan without tasks and stream managers."""
        return PhysicalPlan(version, 1, "wc-1", self.definition, TopologyState.RUNNING, (), ())

    def publish(self, plan: PhysicalPlan) -> None:
        """Publish a plan with the packing plan of the topology."""
        self.publisher.publish(plan, self.packing)

    def pass_time(self, seconds: float) -> None:
        """Advance the clock and run the due timers."""
        self.clock.advance(seconds)
        self.reactor.run_once(0.0)


@pytest.fixture
def publishing(
    tmp_path: Path, definition: TopologyDefinition, packing: PackingPlan, fake_clock: FakeClock
) -> Iterator[Publishing]:
    """At first the store answers."""
    sockets = SocketContext()
    publishing = Publishing(
        tmp_path / "state", definition, packing, fake_clock, sockets.hub(f"ipc://{tmp_path}/tmanager")
    )
    yield publishing
    sockets.close()
    publishing.state.close()


def test_a_repeated_plan_is_not_tried_more_often(publishing: Publishing) -> None:
    """A command that is repeated while the store is away starts no further chain of attempts."""
    publishing.state.away = True
    plan = publishing.plan(1)
    for _ in range(5):
        publishing.publish(plan)
    publishing.state.tried = 0
    for _ in range(4):
        publishing.pass_time(0.5)
    assert publishing.state.tried == 4
    assert all("physical plan 1 cannot be written" in each for each in publishing.waits)


def test_only_the_newest_plan_is_written_when_the_store_is_back(publishing: Publishing) -> None:
    """Calls that wait for a plan are made when a newer plan is written."""
    called: list[str] = []
    publishing.state.away = True
    publishing.publish(publishing.plan(1))
    publishing.publisher.when_written(lambda: called.append("written"))
    publishing.publish(publishing.plan(2))
    publishing.pass_time(0.5)
    assert called == []
    publishing.state.away = False
    publishing.pass_time(0.5)
    assert (called, publishing.waits[-1]) == (["written"], "")
    node = publishing.state.get(NodeKind.PHYSICAL_PLAN, "wc")
    assert node is not None
    assert decode_physical_plan(node.value, "test") == publishing.plan(2)
    publishing.pass_time(5.0)
    assert node == publishing.state.get(NodeKind.PHYSICAL_PLAN, "wc")
