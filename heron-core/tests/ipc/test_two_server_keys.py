"""A hub with two sets of keys, each at its own port, as the rotation of decision 059 needs it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from heron.clock import monotonic_s
from heron.ipc.guarded_hub import GuardedHub, open_guarded_hub
from heron.ipc.keys import ClientKeys, ClientKind, ServerKeys, TopologyKeys, new_keys
from heron.ipc.reactor import Reactor
from heron.ipc.socket import Channel, SocketContext

WAIT_S = 20.0


def members(keys: TopologyKeys) -> ServerKeys:
    """The keys of a hub that accepts the members of this set."""
    return keys.listening_to(ClientKind.MEMBER)


class TwoPorts:
    """A hub that listens with the old and with the new keys."""

    def __init__(self) -> None:
        self.old, self.new = new_keys(), new_keys()
        self.reactor = Reactor()
        self.sockets, self.clients = SocketContext(max_frame_bytes=-1), SocketContext(max_frame_bytes=-1)
        self.hub: GuardedHub = open_guarded_hub(self.sockets, "127.0.0.1", members(self.old))
        self.old_endpoint = self.hub.endpoint
        self.reactor.guard(self.hub)
        self.hub.set_keys((members(self.old), members(self.new)))
        assert list(self.hub.endpoints) == [self.old.server.public, self.new.server.public]
        assert self.hub.endpoint == self.old_endpoint
        self.new_endpoint = self.hub.endpoints[self.new.server.public]

    def client(self, endpoint: str, server: TopologyKeys, own: TopologyKeys) -> Channel:
        """A member of `own` that connects to the server of `server`."""
        return self.clients.client_of(endpoint, keys=ClientKeys(server.server.public, own.member))

    def heard(self) -> bytes:
        """The next frame."""
        deadline_s = monotonic_s() + WAIT_S
        while (message := self.hub.receive_from()) is None:
            assert monotonic_s() < deadline_s, self.hub.gate.refused()
            self.reactor.run_once(0.02)
        return message[1]

    def refusals(self) -> int:
        """How many connections were refused."""
        return sum(self.hub.gate.refused().values())

    def refused(self, before: int) -> None:
        """Wait until one more connection was refused than before."""
        deadline_s = monotonic_s() + WAIT_S
        while self.refusals() == before:
            assert monotonic_s() < deadline_s, "nothing was refused"
            self.reactor.run_once(0.02)
        assert self.hub.receive_from() is None


@pytest.fixture
def ports() -> Iterator[TwoPorts]:
    """Two ports of one hub."""
    made = TwoPorts()
    yield made
    made.reactor.forget(made.hub)
    made.hub.close()
    made.sockets.close()
    made.clients.close()


def test_each_port_accepts_the_clients_of_its_own_set(ports: TwoPorts) -> None:
    """So processes with the old and with the new keys are accepted side by side, and the sets do not mix."""
    for endpoint, keys in ((ports.old_endpoint, ports.old), (ports.new_endpoint, ports.new)):
        ports.client(endpoint, keys, keys).send(b"hello")
        assert ports.heard() == b"hello"
    mixed = (
        (ports.old_endpoint, ports.new, ports.new),
        (ports.old_endpoint, ports.old, ports.new),
        (ports.new_endpoint, ports.new, ports.old),
    )
    for endpoint, server, own in mixed:
        before = ports.refusals()
        ports.client(endpoint, server, own).send(b"with other keys")
        ports.refused(before)


def test_the_end_of_the_old_keys_silences_what_they_have_opened_and_nothing_else(ports: TwoPorts) -> None:
    """So a stranger who has connected with stolen old keys is silent too; peers have moved before."""
    old = ports.client(ports.old_endpoint, ports.old, ports.old)
    new = ports.client(ports.new_endpoint, ports.new, ports.new)
    for client in (old, new):
        client.send(b"before")
        assert ports.heard() == b"before"
    ports.hub.set_keys((members(ports.new),))
    assert ports.hub.endpoint == ports.new_endpoint
    for number in range(10):
        old.send(b"of the old port")
        new.send(b"after %d" % number)
        assert ports.heard() == b"after %d" % number
