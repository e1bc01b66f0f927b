"""A hub on the network: which peers it accepts and refuses."""

from __future__ import annotations

import resource
import socket
import struct
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from functools import partial

import pytest

from heron.clock import monotonic_s
from heron.errors import HeronError
from heron.ipc.guarded_hub import GuardedHub, UnprovedPeers, open_guarded_hub
from heron.ipc.keys import ClientKeys, ClientKind, TopologyKeys, new_keys
from heron.ipc.reactor import Reactor
from heron.ipc.socket import HANDSHAKE_S, Channel, SocketContext
from heron_testing.relay import Relay

MAX_BYTES = 100_000
_GREETING = b"\xff" + bytes(8) + b"\x7f\x03\x01" + b"CURVE".ljust(20, b"\0") + bytes(32)  # of ZMTP 3.1
_LONG_COMMAND, _LONG_MESSAGE = 6, 2  # flags of ZMTP


def too_much(flags: int = _LONG_COMMAND) -> bytes:
    """What no handshake has, as a command or message that has not ended yet."""
    return struct.pack(">BQ", flags, MAX_BYTES) + b"x" * (MAX_BYTES - 1)


TOO_MUCH = too_much()
MIB = 1024 * 1024


class Guarded:
    """A hub, and clients in another socket context."""

    def __init__(self, host: str = "127.0.0.1") -> None:
        self.keys: TopologyKeys = new_keys()
        self.reactor = Reactor()
        self.sockets = SocketContext(max_frame_bytes=MAX_BYTES, link_timeout_s=0.3)
        self.clients = SocketContext(max_frame_bytes=-1, link_timeout_s=0.3)
        keys = self.keys.listening_to(ClientKind.MEMBER, ClientKind.READER)
        self.hub: GuardedHub = open_guarded_hub(self.sockets, host, keys)
        self.reactor.guard(self.hub)
        self.reactor.on_readable(self.hub, self._read)
        self.heard: list[tuple[bytes, bytes, ClientKind]] = []

    def _read(self) -> None:
        while (message := self.hub.receive_from()) is not None:
            self.heard.append(message)

    def client(self, keys: ClientKeys, identity: bytes = b"") -> Channel:
        return self.clients.client_of(self.hub.endpoint, identity, keys=keys)

    def until(self, condition: Callable[[], object]) -> None:
        deadline = monotonic_s() + 10
        while not condition():
            assert monotonic_s() < deadline, "not in time"
            self.reactor.run_once(0.02)

    def close(self) -> None:
        self.reactor.forget(self.hub)
        self.hub.close()
        self.sockets.close()
        self.clients.close()


@pytest.fixture
def guarded() -> Iterator[Guarded]:
    made = Guarded()
    yield made
    made.close()


def test_known_keys_are_accepted_and_each_frame_carries_the_owner_of_the_key(guarded: Guarded) -> None:
    """The rights of a client depend on it."""
    for kind in (ClientKind.MEMBER, ClientKind.READER):
        client = guarded.client(guarded.keys.connecting_as(kind), kind.value.encode())
        client.send(b"hello")
        guarded.until(lambda: guarded.heard)
        assert guarded.heard.pop() == (kind.value.encode(), b"hello", kind)
        assert guarded.hub.send(kind.value.encode(), b"answer")
        assert client.wait(10)
        assert client.receive() == b"answer"
    assert not any(guarded.hub.gate.refused().values())


def test_unknown_keys_are_refused_and_counted(guarded: Guarded) -> None:
    """So are the topology's control key where it has no rights, and a known key for another server."""
    strangers = (new_keys().member, guarded.keys.control)
    for pair in strangers:
        guarded.client(ClientKeys(guarded.keys.server.public, pair)).send(b"let me in")
    guarded.until(lambda: guarded.hub.gate.refused()["unknown-key"] == len(strangers))
    elsewhere = guarded.client(ClientKeys(new_keys().server.public, guarded.keys.member))
    elsewhere.send(b"who are you")
    guarded.until(lambda: guarded.hub.gate.refused()["protocol"] > 0)
    elsewhere.close()
    assert guarded.heard == []


def test_a_network_address_without_keys_is_refused_on_both_sides(guarded: Guarded) -> None:
    """No link on the network is ever in clear text, even if a caller forgets the keys."""
    with pytest.raises(HeronError, match="an address on the network needs keys"):
        guarded.clients.client_of(guarded.hub.endpoint)
    for bind in (guarded.clients.hub, guarded.clients.inbox, guarded.clients.channel_bound):
        with pytest.raises(HeronError, match="only a guarded hub may listen"):
            bind("tcp://127.0.0.1:0")


def test_a_frame_above_the_limit_ends_the_connection_of_its_sender(guarded: Guarded) -> None:
    """The connection ends before the frame is in memory, and the sender notices it like any other break."""
    client = guarded.client(guarded.keys.connecting_as(ClientKind.MEMBER))
    gone: list[bool] = []
    guarded.reactor.on_disconnect(client, lambda: gone.append(True))
    client.send(b"hello")
    guarded.until(lambda: guarded.heard)
    client.send(b"x" * (2 * MAX_BYTES))
    guarded.until(lambda: gone)
    assert [frame for _, frame, _ in guarded.heard] == [b"hello"]
    guarded.reactor.forget(client)


def test_a_stranger_who_sends_more_than_a_handshake_is_cut_off(guarded: Guarded) -> None:
    """ZeroMQ gives every connection the memory of the largest frame, also before its peer has proved a key."""
    for flags in (_LONG_COMMAND, _LONG_MESSAGE):
        with stranger_of(guarded) as stranger:
            begun_s = monotonic_s()
            stranger.sendall(too_much(flags))
            guarded.until(partial(_is_closed, stranger))
            assert monotonic_s() - begun_s < HANDSHAKE_S / 2
    guarded.until(lambda: sum(guarded.hub.gate.refused().values()) == 2)


def test_a_peer_that_has_proved_its_key_may_send_a_large_frame_at_once(guarded: Guarded) -> None:
    """What it sends right behind the handshake counts for no limit of strangers, and it is watched no more."""
    client = guarded.client(guarded.keys.connecting_as(ClientKind.MEMBER))
    client.send(b"x" * (MAX_BYTES - 1000))  # encryption adds some bytes
    guarded.until(lambda: guarded.heard and not guarded.hub.gate.unproved)
    assert not any(guarded.hub.gate.refused().values())
    idle = guarded.client(guarded.keys.connecting_as(ClientKind.READER))
    idle.send(b"hello")
    guarded.until(lambda: len(guarded.heard) == 2 and not guarded.hub.gate.unproved)
    idle.send(b"again")
    guarded.until(lambda: len(guarded.heard) == 3)


def test_a_stranger_is_watched_whoever_reads_the_counters(guarded: Guarded) -> None:
    """Metrics are read between two rounds; the events of connections stay for the gate."""
    with stranger_of(guarded) as stranger:
        assert guarded.hub.gate.events.poll(10_000)
        begun_s = monotonic_s()
        assert not any(guarded.hub.gate.refused().values())
        stranger.sendall(TOO_MUCH)
        guarded.until(partial(_is_closed, stranger))
        assert monotonic_s() - begun_s < HANDSHAKE_S / 2


def test_a_request_or_event_is_no_reason_to_look(guarded: Guarded) -> None:
    """A look costs time for each stranger, on the thread that routes data, and strangers can cause many events."""
    with stranger_of(guarded) as stranger:
        assert guarded.hub.gate.events.poll(10_000)
        assert guarded.hub.serve()
        stranger.sendall(TOO_MUCH)
        for _ in range(3):
            assert guarded.hub.serve()
        guarded.until(lambda: not guarded.hub.look())
        guarded.until(partial(_is_closed, stranger))


@pytest.fixture
def strangers() -> Iterator[list[tuple[socket.socket, socket.socket]]]:
    """Both ends of three connections, the accepting end first."""
    with ExitStack() as ends, socket.create_server(("127.0.0.1", 0)) as server:
        made = []
        for _ in range(3):
            peer = ends.enter_context(socket.create_connection(server.getsockname()))
            made.append((ends.enter_context(server.accept()[0]), peer))
        yield made


def test_each_stranger_has_its_turn(strangers: list[tuple[socket.socket, socket.socket]]) -> None:
    """A look takes a bounded time, however many are in their handshake."""
    unproved = UnprovedPeers(at_once=1)
    for own, _ in strangers:
        unproved.accepted(own.fileno())
    strangers[-1][1].sendall(TOO_MUCH)
    watched = []
    for _ in range(4):
        unproved.end_large()
        watched.append(len(unproved))
    assert watched == [3, 3, 2, 2]


def test_idle_strangers_do_not_hide_one_that_fills_the_memory(
    strangers: list[tuple[socket.socket, socket.socket]],
) -> None:
    """With 1,000 of them its turn comes after 0.2 s, in which it can send some hundred MiB on one machine."""
    memory_bytes = [0, 4 * MIB, 9 * MIB]
    unproved = UnprovedPeers(at_once=1, most_memory_bytes=partial(memory_bytes.pop, 0))
    for own, _ in strangers:
        unproved.accepted(own.fileno())
    strangers[-1][1].sendall(TOO_MUCH)
    watched = []
    for _ in range(2):
        unproved.end_large()
        watched.append(len(unproved))
    assert watched == [3, 2]


def test_strangers_are_watched_when_no_descriptor_is_left(strangers: list[tuple[socket.socket, socket.socket]]) -> None:
    """They can use up the descriptors themselves. A descriptor that is no connection any more is forgotten."""
    unproved, (own, peer), gone = UnprovedPeers(), strangers[0], strangers[1][0]
    for each in (own, gone):
        unproved.accepted(each.fileno())
    gone.close()
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (0, hard))
    try:
        unproved.end_large()
        watched = len(unproved)
        peer.sendall(TOO_MUCH)
        unproved.end_large()
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert (watched, len(unproved)) == (1, 0)
    peer.settimeout(10)
    with suppress(ConnectionResetError):
        assert peer.recv(1) == b""


def stranger_of(guarded: Guarded) -> socket.socket:
    """A connection that has sent the greeting of CURVE."""
    host, _, port = guarded.hub.endpoint.removeprefix("tcp://").partition(":")
    made = socket.create_connection((host, int(port)))
    made.setblocking(False)
    made.sendall(_GREETING)
    return made


def _is_closed(connection: socket.socket) -> bool:
    try:
        return not connection.recv(1000)
    except BlockingIOError:
        return False
    except ConnectionResetError:
        return True


def test_a_silent_link_counts_as_broken(guarded: Guarded) -> None:
    """A pulled cable ends no connection, so idle links are pinged. A broken connection does not resume."""
    host, _, port = guarded.hub.endpoint.removeprefix("tcp://").partition(":")
    relay = Relay((host, int(port)))
    keys = guarded.keys.connecting_as(ClientKind.MEMBER)
    client = guarded.clients.client_of("tcp://{}:{}".format(*relay.address), keys=keys)
    gone: list[bool] = []
    try:
        guarded.reactor.on_disconnect(client, lambda: gone.append(True))
        client.send(b"hello")
        guarded.until(lambda: guarded.heard)
        relay.swallows = True
        guarded.until(lambda: gone)
        relay.swallows = False
        client.send(b"of another session")
        for _ in range(5):
            guarded.reactor.run_once(0.02)
        assert (len(guarded.heard), relay.accepted) == (1, 1)
        guarded.reactor.forget(client)
    finally:
        relay.close()


def test_a_connection_attempt_without_answer_ends_soon(guarded: Guarded) -> None:
    """The system would retry with growing pauses for two minutes, and delay the recovery of the link."""
    with socket.socket() as listener, socket.socket() as first:
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        first.connect(listener.getsockname())  # the backlog has room for one connection; further ones get no answer
        endpoint = f"tcp://127.0.0.1:{listener.getsockname()[1]}"
        client = guarded.clients.client_of(endpoint, keys=guarded.keys.connecting_as(ClientKind.MEMBER))
        gone: list[bool] = []
        guarded.reactor.on_disconnect(client, lambda: gone.append(True))
        guarded.until(lambda: gone)
        guarded.reactor.forget(client)


def test_a_hub_can_listen_on_an_interface() -> None:
    """The published endpoint has the address of the interface."""
    made = Guarded("lo")
    try:
        assert made.hub.endpoint.startswith("tcp://127.0.0.1:")
        made.client(made.keys.connecting_as(ClientKind.MEMBER)).send(b"hello")
        made.until(lambda: made.heard)
    finally:
        made.close()


def test_no_peer_is_accepted_before_the_gate_is_served(guarded: Guarded) -> None:
    """ZeroMQ accepts every key without a handler. Here a handler always exists, even while it does not answer."""
    guarded.reactor.forget(guarded.hub)
    guarded.reactor.on_readable(guarded.hub, guarded._read)  # as in the fixture
    client = guarded.client(guarded.keys.connecting_as(ClientKind.MEMBER))
    client.send(b"hello")
    for _ in range(5):
        guarded.reactor.run_once(0.02)
    assert guarded.heard == []
    guarded.reactor.guard(guarded.hub)
    guarded.until(lambda: guarded.heard)
