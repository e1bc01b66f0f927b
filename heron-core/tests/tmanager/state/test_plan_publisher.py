"""Publishing plans: to whom, and while the state manager is away."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from heron.api.definition import TopologyDefinition
from heron.errors import StateUnavailableError
from heron.ipc.documents.status import LeaderStatus
from heron.ipc.envelope import body_of, parse_control
from heron.ipc.reactor import Reactor
from heron.ipc.socket import Channel, Hub, SocketContext
from heron.planner.packing_plan import PackingPlan
from heron.planner.physical_plan import PhysicalPlan, TopologyState
from heron.spi.statemgr import NodeKind
from heron.state_nodes.plans import decode_physical_plan, decode_tasks, encode_plan
from heron.tmanager.state.containers import Containers
from heron.tmanager.state.plan_publisher import PlanPublisher
from heron.tmanager.state.state_store import StateStore
from heron_statemgr_localfs.state_manager import LocalFsOptions, LocalFsStateManager
from heron_testing.fake_clock import FakeClock
from heron_testing.waiting import wait_until


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
    """A publisher of the leader of epoch 1, without stream managers and at first without executors."""

    def __init__(
        self, root: Path, definition: TopologyDefinition, packing: PackingPlan, clock: FakeClock, hub: Hub
    ) -> None:
        self.clock, self.definition, self.packing, self.hub = clock, definition, packing, hub
        self.state = Away(LocalFsOptions(str(root)))
        self.state.set(NodeKind.TOPOLOGY, "wc", encode_plan(definition))
        self.state.set(NodeKind.PACKING_PLAN, "wc", encode_plan(packing))
        store = StateStore(self.state, "wc", "wc-1")
        store.take_over(LeaderStatus(0, 1, "here", 1, 0.0))
        self.reactor = Reactor(clock)
        self.waits: list[str] = []
        self.containers = Containers(hub, 1)
        self.publisher = PlanPublisher(self.reactor, store, self.containers, self.waits.append)

    def plan(self, version: int) -> PhysicalPlan:
        """A plan without tasks and stream managers."""
        return PhysicalPlan(version, 1, "wc-1", self.definition, TopologyState.RUNNING, (), ())

    def publish(self, plan: PhysicalPlan) -> None:
        """Publish a plan with the packing plan of the topology."""
        self.publisher.publish(plan, self.packing)

    def add_executor(self, container_id: int, channel: Channel) -> None:
        """An executor connects."""
        channel.send(b"hello")
        message = wait_until(self.hub.receive)
        assert message is not None
        self.containers.add_executor(container_id, message[0])

    def pass_time(self, seconds: float) -> None:
        """Advance the clock and run the due timers."""
        self.clock.advance(seconds)
        self.reactor.run_once(0.0)


@pytest.fixture
def publishing(
    tmp_path: Path, definition: TopologyDefinition, packing: PackingPlan, fake_clock: FakeClock
) -> Iterator[Publishing]:
    """At first the store answers."""
    sockets = SocketContext(max_frame_bytes=-1)
    publishing = Publishing(
        tmp_path / "state", definition, packing, fake_clock, sockets.hub(f"ipc://{tmp_path}/tmanager")
    )
    yield publishing
    sockets.close()
    publishing.state.close()


class Executors:
    """Connects executors, and reads what the topology manager sends to them."""

    def __init__(self, publishing: Publishing, endpoint: str) -> None:
        self._publishing, self._endpoint = publishing, endpoint
        self.sockets = SocketContext(max_frame_bytes=-1)
        self._channels: dict[int, Channel] = {}

    def connect(self, *containers: int) -> None:
        """Connect the executors of these containers."""
        for container_id in containers:
            channel = self._channels[container_id] = self.sockets.client_of(self._endpoint)
            self._publishing.add_executor(container_id, channel)

    def message(self, container_id: int) -> tuple[int, ...] | str:
        """The next message to an executor: the ids of its tasks, or the reason to stop."""
        channel = self._channels[container_id]
        assert channel.wait(10), "nothing came"
        envelope = parse_control(channel.receive() or b"")
        if body_of(envelope) == "stop":
            return envelope.stop.reason
        return tuple(each.task_id for each in decode_tasks(envelope.container_tasks.document))

    def silent(self) -> bool:
        """Whether no executor has a message."""
        return not any(channel.wait(0.05) for channel in self._channels.values())


@pytest.fixture
def executors(publishing: Publishing, tmp_path: Path) -> Iterator[Executors]:
    """None is connected at first."""
    found = Executors(publishing, f"ipc://{tmp_path}/tmanager")
    yield found
    found.sockets.close()


def test_executors_receive_the_tasks_of_a_changed_packing_plan(
    publishing: Publishing, executors: Executors, larger: PackingPlan
) -> None:
    """They start and stop processes. A plan with other addresses only is not for them."""
    executors.connect(0, 1, 3)
    publishing.publish(publishing.plan(1))
    assert executors.message(1) == (1, 2)
    assert executors.message(3) == "container 3 has left the plan"
    publishing.publish(publishing.plan(2))
    assert executors.silent(), "container 0 has no tasks"
    publishing.publisher.publish(publishing.plan(3), larger)
    assert (executors.message(1), executors.message(3)) == ((1, 2), (4,))


def test_the_executor_of_a_removed_container_stops_also_when_it_connects_later(
    publishing: Publishing, executors: Executors, smaller: PackingPlan
) -> None:
    """It may have been restarting when the container left the plan."""
    executors.connect(1, 2)
    publishing.publish(publishing.plan(1))
    assert (executors.message(1), executors.message(2)) == ((1, 2), (3,))
    publishing.publisher.publish(publishing.plan(2), smaller)
    assert (executors.message(1), executors.message(2)) == ((1, 2), "container 2 has left the plan")
    executors.connect(2)
    publishing.publisher.send_tasks(2)
    assert executors.message(2) == "container 2 has left the plan"


def test_executors_receive_nothing_that_is_not_written(
    publishing: Publishing, executors: Executors, smaller: PackingPlan
) -> None:
    """A successor would not know that the tasks have been stopped."""
    executors.connect(2)
    publishing.publisher.send_tasks(2)
    publishing.publish(publishing.plan(1))
    assert executors.message(2) == (3,)
    publishing.state.away = True
    publishing.publisher.publish(publishing.plan(2), smaller)
    publishing.publisher.send_tasks(2)
    assert executors.message(2) == (3,)
    publishing.state.away = False
    publishing.pass_time(0.5)
    assert executors.message(2) == "container 2 has left the plan"


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
