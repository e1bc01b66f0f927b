"""The connections of stream managers: who is sent to, and who is forgotten."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from heron.ipc import control_pb2 as pb
from heron.ipc.envelope import Envelope, parse_control
from heron.ipc.socket import Channel, SocketContext
from heron.tmanager.state.containers import Containers
from heron_testing.waiting import wait_until


class StreamManagers:
    """Connects stream managers, and the containers of a leader of epoch 7."""

    def __init__(self, endpoint: str) -> None:
        self.sockets = SocketContext(max_frame_bytes=-1)
        self.hub = self.sockets.hub(endpoint)
        self.containers = Containers(self.hub, 7)
        self._endpoint = endpoint

    def connect(self, container_id: int, identity: bytes) -> Channel:
        """A stream manager registers."""
        channel = self.sockets.client_of(self._endpoint, identity)
        channel.send(b"hello")
        wait_until(self.hub.receive)
        self.containers.add_stmgr(container_id, identity)
        return channel

    def stop(self) -> bytes:
        """The frame of a message to stream managers."""
        return self.containers.frame_for_stmgrs(Envelope(stop=pb.Stop(reason="test")))


@pytest.fixture
def stmgrs(tmp_path: Path) -> Iterator[StreamManagers]:
    found = StreamManagers(f"ipc://{tmp_path}/tmanager")
    yield found
    found.sockets.close()


def test_a_message_to_all_has_the_epoch_of_the_leader(stmgrs: StreamManagers) -> None:
    """Each stream manager gets it once."""
    channels = [stmgrs.connect(1, b"one"), stmgrs.connect(2, b"two")]
    stmgrs.containers.send_to_stmgrs(stmgrs.stop())
    for channel in channels:
        assert channel.wait(10)
        assert parse_control(channel.receive() or b"").epoch == 7
        assert channel.receive() is None


def test_a_frame_for_many_takes_little_space(stmgrs: StreamManagers) -> None:
    """The plan of a large topology goes to each of its stream managers."""
    plan = Envelope(plan=pb.Plan(version=1, document=b'{"task_id": 1}' * 10_000))
    frame = stmgrs.containers.frame_for_stmgrs(plan)
    assert len(frame) < 2_000
    assert parse_control(frame).plan == plan.plan


def test_a_process_may_speak_for_two_containers(stmgrs: StreamManagers) -> None:
    """No stream manager does, but a message to one that is gone must not end the topology manager."""
    stmgrs.containers.add_stmgr(1, b"nobody")
    stmgrs.containers.add_stmgr(2, b"nobody")
    stmgrs.containers.send_to_stmgrs(stmgrs.stop())
    stmgrs.containers.send_to_stmgr(1, stmgrs.stop())
    assert stmgrs.containers.stmgr_of(b"nobody") is None


def test_a_stream_manager_that_is_gone_is_forgotten(stmgrs: StreamManagers) -> None:
    """It registers again when it returns; the others get the message."""
    stmgrs.containers.add_stmgr(1, b"nobody")
    stmgrs.containers.add_stmgr(2, b"nobody either")
    here = stmgrs.connect(3, b"here")
    stmgrs.containers.send_to_stmgrs(stmgrs.stop())
    assert here.wait(10)
    assert stmgrs.containers.stmgr_of(b"nobody") is None
    stmgrs.containers.send_to_stmgr(2, stmgrs.stop())
    assert stmgrs.containers.stmgr_of(b"nobody either") is None
    assert stmgrs.containers.stmgr_of(b"here") == 3


def test_a_replaced_stream_manager_speaks_for_no_container(stmgrs: StreamManagers) -> None:
    """Its late heartbeats must not count for its successor, and its end must not forget the successor."""
    stmgrs.connect(1, b"former")
    successor = stmgrs.connect(1, b"successor")
    assert stmgrs.containers.stmgr_of(b"former") is None
    assert stmgrs.containers.stmgr_of(b"successor") == 1
    stmgrs.containers.send_to_stmgrs(stmgrs.stop())
    assert successor.wait(10)
    assert stmgrs.containers.stmgr_of(b"successor") == 1
