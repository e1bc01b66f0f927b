"""The four kinds of sockets: which frames they keep and drop, and their errors."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from heron.errors import HeronError
from heron.ipc.socket import Hub, SocketContext
from heron_testing.waiting import Eventually


@pytest.fixture
def sockets() -> Iterator[SocketContext]:
    context = SocketContext(max_frame_bytes=1000)
    yield context
    context.close()


def received(hub: Hub, eventually: Eventually) -> tuple[bytes, bytes]:
    found: list[tuple[bytes, bytes]] = []

    def look() -> bool:
        message = hub.receive()
        if message is not None:
            found.append(message)
        return bool(found)

    eventually(look)
    return found[0]


def test_a_hub_replies_to_the_sender_of_a_frame(tmp_path: Path, sockets: SocketContext, eventually: Eventually) -> None:
    """A client may set its identity."""
    hub = sockets.hub(f"ipc://{tmp_path}/hub")
    client = sockets.client_of(f"ipc://{tmp_path}/hub", b"me")
    client.send(b"question")
    identity, frame = received(hub, eventually)
    assert (identity, frame) == (b"me", b"question")
    assert hub.send(identity, b"answer")
    assert client.wait(10)
    assert client.receive() == b"answer"
    assert client.receive() is None


def test_a_hub_reports_a_peer_that_is_not_connected(tmp_path: Path, sockets: SocketContext) -> None:
    """ZeroMQ drops the frame silently by default."""
    assert not sockets.hub(f"ipc://{tmp_path}/hub").send(b"nobody", b"frame")


def test_a_hub_sends_one_frame_to_several_peers(tmp_path: Path, sockets: SocketContext, eventually: Eventually) -> None:
    """It says which of them are not connected; the others get the frame."""
    hub = sockets.hub(f"ipc://{tmp_path}/hub")
    first, second = (sockets.client_of(f"ipc://{tmp_path}/hub", each) for each in (b"first", b"second"))
    for client in (first, second):
        client.send(b"hello")
        received(hub, eventually)
    assert hub.send_to_each((b"first", b"nobody", b"second"), b"plan") == [b"nobody"]
    for client in (first, second):
        assert client.wait(10)
        assert client.receive() == b"plan"


def test_only_an_eager_client_keeps_frames_for_an_absent_hub(
    tmp_path: Path, sockets: SocketContext, eventually: Eventually
) -> None:
    """A request must wait for its hub. Repeated hellos must not pile up."""
    endpoint = f"ipc://{tmp_path}/hub"
    modest, eager = sockets.client_of(endpoint, b"modest", eager=False), sockets.client_of(endpoint, b"eager")
    modest.send(b"dropped")
    eager.send(b"kept")
    hub = sockets.hub(endpoint)
    assert received(hub, eventually) == (b"eager", b"kept")
    assert hub.receive() is None


def test_an_oversize_frame_ends_its_connection_only(
    tmp_path: Path, sockets: SocketContext, eventually: Eventually
) -> None:
    """The receiver closes it before the frame takes memory; other connections continue."""
    endpoint = f"ipc://{tmp_path}/hub"
    hub = sockets.hub(endpoint)
    bad, good = sockets.client_of(endpoint, b"bad"), sockets.client_of(endpoint, b"good")
    bad.send(b"x" * 1001)
    good.send(b"fine")
    assert received(hub, eventually) == (b"good", b"fine")
    assert hub.receive() is None


def test_a_push_drops_and_counts_without_a_receiver(tmp_path: Path, sockets: SocketContext) -> None:
    """Metrics may be lost, but memory must not grow: 1,000 records wait, further ones are counted."""
    push = sockets.push_to(f"ipc://{tmp_path}/nobody")
    for _ in range(1200):
        push.send(b"record")
    assert push.dropped == 200


def test_the_error_of_a_socket_names_its_path(tmp_path: Path, sockets: SocketContext) -> None:
    """The usual cause is a missing directory."""
    with pytest.raises(HeronError, match="does its directory exist, and is it writable"):
        sockets.hub(f"ipc://{tmp_path}/missing/hub")


def test_a_context_has_the_sockets_of_a_thousand_peers(tmp_path: Path, sockets: SocketContext) -> None:
    """A stream manager has a channel and two sockets of its monitor for each peer; ZeroMQ's default is 1,023."""
    sockets.hub(f"ipc://{tmp_path}/hub")
    channels = [sockets.client_of(f"ipc://{tmp_path}/hub") for _ in range(400)]
    for each in channels:
        each.monitor()
    for each in channels:
        each.close()
