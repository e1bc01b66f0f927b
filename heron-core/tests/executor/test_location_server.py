"""What the processes of a container are told about the topology manager, whatever the watch of a store reports."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import cast

import pytest

from heron.clock import monotonic_s
from heron.executor.location_server import LocationServer
from heron.ipc import control_pb2 as pb
from heron.ipc.envelope import Envelope, control_frame, parse_control
from heron.ipc.reactor import Reactor
from heron.ipc.socket import SocketContext
from heron.spi.statemgr import NodeKind, StateManager, Versioned
from heron.state_nodes.tmanager_location import TManagerLocation, encode_tmanager_location

Told = tuple[str, int]


class Node:
    """The node of the location, as a store reports its changes to the service, and a process that asks."""

    def __init__(self, folder: Path) -> None:
        self._reactor, self._sockets = Reactor(), SocketContext(max_frame_bytes=-1)
        endpoint = f"ipc://{folder}/executor"
        self._server = LocationServer(self._reactor, self._sockets, endpoint, "wc-1")
        self._changed: Callable[[Versioned | None], None] = lambda _node: None
        self._server.watch(cast("StateManager", self), "wc", lambda _node: None)
        self._process = self._sockets.client_of(endpoint)
        self._process.send(control_frame(Envelope(location_request=pb.LocationRequest(process="stmgr"))))
        assert self.told() == ("", 0)

    def watch(self, kind: NodeKind, _topology: str, on_change: Callable[[Versioned | None], None]) -> None:
        """As `StateManager.watch`."""
        if kind is NodeKind.TMANAGER_LOCATION:
            self._changed = on_change

    def is_held(self, endpoint: str, epoch: int, topology_id: str = "wc-1") -> None:
        """The watch reports that a leader holds the node."""
        self._changed(Versioned(encode_tmanager_location(TManagerLocation(endpoint, topology_id, 1, "here")), epoch))

    def is_gone(self) -> None:
        """The watch reports that no leader holds the node."""
        self._changed(None)

    def told(self) -> Told:
        """The endpoint and the epoch that the process is told next."""
        deadline_s = monotonic_s() + 10.0
        while (frame := self._process.receive()) is None:
            assert monotonic_s() < deadline_s, "nothing came"
            self._reactor.run_once(0.02)
        location = parse_control(frame).tmanager_location
        return location.endpoint, location.epoch

    def close(self) -> None:
        """Closes the sockets."""
        self._server.close()
        self._sockets.close()


@pytest.fixture
def node(tmp_path: Path) -> Iterator[Node]:
    made = Node(tmp_path)
    yield made
    made.close()


def test_the_same_leader_again_is_no_change(node: Node) -> None:
    """A store reports a node again after a lost connection, and when its holder repairs it."""
    node.is_held("first", 3)
    node.is_held("first", 3)
    node.is_held("second", 4)
    assert [node.told(), node.told()] == [("first", 3), ("second", 4)]


def test_a_leader_returns_with_its_epoch(node: Node) -> None:
    """Its node was absent for a moment, but nobody else led meanwhile."""
    node.is_held("first", 3)
    node.is_gone()
    node.is_held("first", 3)
    assert [node.told(), node.told(), node.told()] == [("first", 3), ("", 3), ("first", 3)]


def test_nobody_is_sent_to_a_former_leader_or_to_that_of_another_run(node: Node) -> None:
    """Changes may be reported late."""
    node.is_held("second", 4)
    node.is_held("first", 3)
    node.is_held("second", 4)
    node.is_held("foreign", 5, "wc-2")
    assert [node.told() for _ in range(4)] == [("second", 4), ("", 4), ("second", 4), ("", 4)]
