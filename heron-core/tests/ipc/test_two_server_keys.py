"""What libzmq allows, and the rotation of decision 059 needs: one hub with two server keys at two ports."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import zmq

from heron.clock import monotonic_s
from heron.ipc.guarded_hub import GuardedHub, open_guarded_hub
from heron.ipc.keys import ClientKeys, ServerKeys, Speaker, TopologyKeys, new_keys
from heron.ipc.reactor import Reactor
from heron.ipc.socket import Channel, SocketContext

WAIT_S = 20.0


class TwoPorts:
    """A hub that accepts the members of two sets of keys, and listens with both server keys."""

    def __init__(self) -> None:
        self.old, self.new = new_keys(), new_keys()
        members = {keys.member.public: Speaker.MEMBER for keys in (self.old, self.new)}
        self.reactor = Reactor()
        self.sockets, self.clients = SocketContext(), SocketContext()
        self.hub: GuardedHub = open_guarded_hub(self.sockets, "127.0.0.1", ServerKeys(self.old.server, members))
        self.old_endpoint = self.hub.endpoint
        self.hub.raw.setsockopt(zmq.CURVE_SECRETKEY, self.new.server.secret.encode("ascii"))
        self.hub.raw.bind("tcp://127.0.0.1:0")
        self.new_endpoint = self.hub.raw.getsockopt_string(zmq.LAST_ENDPOINT, "ascii").rstrip("\0")
        self.reactor.guard(self.hub)

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


def test_each_port_has_the_server_key_that_was_set_when_it_was_bound(ports: TwoPorts) -> None:
    """So the old and the new keys of clients and of the server are accepted side by side."""
    for endpoint, server in ((ports.old_endpoint, ports.old), (ports.new_endpoint, ports.new)):
        for own in (ports.old, ports.new):
            ports.client(endpoint, server, own).send(b"hello")
            assert ports.heard() == b"hello"
    before = ports.refusals()
    ports.client(ports.old_endpoint, ports.new, ports.new).send(b"to another server")
    ports.refused(before)


def test_the_end_of_a_port_silences_what_it_has_accepted_and_nothing_else(ports: TwoPorts) -> None:
    """So the end of the old keys also silences a stranger who has connected with them; peers have to move before."""
    old = ports.client(ports.old_endpoint, ports.old, ports.old)
    new = ports.client(ports.new_endpoint, ports.new, ports.new)
    for client in (old, new):
        client.send(b"before")
        assert ports.heard() == b"before"
    ports.hub.raw.unbind(ports.old_endpoint)
    for number in range(10):
        old.send(b"of the old port")
        new.send(b"after %d" % number)
        assert ports.heard() == b"after %d" % number
