"""Finding the topology manager: through the executor, again and again, and never back to a deposed one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from heron.clock import monotonic_s
from heron.ipc import control_pb2 as pb
from heron.ipc.envelope import Envelope, body_of, control_frame, parse_control
from heron.ipc.guarded_hub import open_guarded_hub
from heron.ipc.keys import Speaker, new_keys
from heron.ipc.locator import TManagerChannel
from heron.ipc.reactor import Reactor
from heron.ipc.socket import Hub, SocketContext
from heron_testing.relay import Relay


class Network:
    """An executor's hub and two topology managers' hubs, and the channel that is tested."""

    def __init__(self, folder: Path) -> None:
        self.reactor = Reactor()
        self.sockets = SocketContext()
        self.keys = new_keys()
        self.endpoints = [f"ipc://{folder}/t{number}" for number in range(2)]
        self.tmanagers = [self.sockets.hub(endpoint) for endpoint in self.endpoints]
        self.executor = self.sockets.hub(f"ipc://{folder}/executor")
        self.heard: list[str] = []
        self.connected = 0
        self.channel = TManagerChannel(
            self.reactor,
            self.sockets,
            f"ipc://{folder}/executor",
            keys=self.keys.connecting_as(Speaker.MEMBER),
            process="test",
            on_connect=self._hello,
            on_envelope=lambda envelope: self.heard.append(envelope.stop.reason),
        )
        self.client, asked = self.read(self.executor)
        assert asked.location_request.process == "test"

    def _hello(self) -> None:
        self.connected += 1
        self.channel.send(Envelope(stop=pb.Stop(reason="hello")))

    def until(self, condition: Callable[[], object]) -> None:
        deadline = monotonic_s() + 10
        while not condition():
            assert monotonic_s() < deadline, "nothing came"
            self.reactor.run_once(0.02)

    def read(self, hub: Hub) -> tuple[bytes, Envelope]:
        found: list[tuple[bytes, bytes]] = []

        def look() -> bool:
            message = hub.receive()
            found.extend([message] if message else [])
            return bool(found)

        self.until(look)
        return found[0][0], parse_control(found[0][1])

    def locate(self, number: int | None, epoch: int) -> None:
        endpoint = "" if number is None else self.endpoints[number]
        self.executor.send(
            self.client, control_frame(Envelope(tmanager_location=pb.TManagerLocation(endpoint=endpoint, epoch=epoch)))
        )


@pytest.fixture
def network(tmp_path: Path) -> Iterator[Network]:
    made = Network(tmp_path)
    yield made
    made.sockets.close()


def say(hub: Hub, client: bytes, reason: str, epoch: int) -> None:
    hub.send(client, control_frame(Envelope(epoch=epoch, stop=pb.Stop(reason=reason))))


def test_it_follows_the_location(network: Network) -> None:
    """Each new topology manager gets a hello; while there is none, sending says so."""
    assert not network.channel.send(Envelope(stop=pb.Stop()))
    network.locate(0, 1)
    first, hello = network.read(network.tmanagers[0])
    assert body_of(hello) == "stop"
    say(network.tmanagers[0], first, "plan 1", 1)
    network.until(lambda: network.heard)
    network.locate(1, 2)
    second, _ = network.read(network.tmanagers[1])
    say(network.tmanagers[1], second, "plan 2", 2)
    network.until(lambda: len(network.heard) == 2)
    assert network.heard == ["plan 1", "plan 2"]
    network.locate(None, 2)
    network.until(lambda: not network.channel.send(Envelope(stop=pb.Stop())))


def test_an_older_epoch_is_refused(network: Network) -> None:
    """A deposed leader's words and an outdated location change nothing, and are counted."""
    network.locate(0, 5)
    client, _ = network.read(network.tmanagers[0])
    say(network.tmanagers[0], client, "deposed", 4)
    say(network.tmanagers[0], client, "newer", 7)
    say(network.tmanagers[0], client, "between", 6)
    network.until(lambda: network.channel.deposed == 2)
    assert network.heard == ["newer"]
    network.locate(1, 6)
    network.locate(0, 7)
    say(network.tmanagers[0], client, "last", 7)
    network.until(lambda: len(network.heard) == 2)
    assert network.connected == 1


@pytest.mark.parametrize("away", [True, False])
def test_a_deposed_leader_that_wakes_up_is_refused_and_counted(network: Network, away: bool) -> None:
    """It was stopped, does not know, and answers what it was asked then; whether there is a successor yet or not."""
    network.locate(0, 1)
    client, _ = network.read(network.tmanagers[0])
    network.locate(*((None, 1) if away else (1, 2)))
    network.until(lambda: network.connected == (1 if away else 2) and not network.heard)
    if away:
        network.until(lambda: not network.channel.send(Envelope(stop=pb.Stop())))
    for _ in range(3):
        say(network.tmanagers[0], client, "deposed", 1)
    network.until(lambda: network.channel.deposed == 3)
    network.locate(1, 2)
    successor, _ = network.read(network.tmanagers[1])
    say(network.tmanagers[1], successor, "leads", 2)
    network.until(lambda: network.heard)
    assert network.heard == ["leads"]
    assert [(each.name, each.value) for each in network.channel.metrics()] == [("deposed-messages", 3)]


def test_garbage_is_counted_and_survived(network: Network) -> None:
    """Neither the executor nor the topology manager can end the process with a bad frame."""
    network.executor.send(network.client, b"garbage")
    network.locate(0, 1)
    client, _ = network.read(network.tmanagers[0])
    network.tmanagers[0].send(client, b"")
    say(network.tmanagers[0], client, "still here", 1)
    network.until(lambda: network.heard)
    assert network.channel.refused == 2


def test_a_broken_connection_is_made_anew_with_a_new_hello(network: Network) -> None:
    """The topology manager knows this process by its connection: without a hello it could not answer."""
    hub = open_guarded_hub(network.sockets, "127.0.0.1", network.keys.listening_to(Speaker.MEMBER))
    network.reactor.guard(hub)
    host, _, port = hub.endpoint.removeprefix("tcp://").partition(":")
    relay = Relay((host, int(port)))
    try:
        network.endpoints[0] = "tcp://{}:{}".format(*relay.address)
        network.locate(0, 1)
        first, _ = network.read(hub)
        relay.cut()
        second, hello = network.read(hub)
        assert first != second
        assert hello.stop.reason == "hello"
        say(hub, second, "welcome back", 1)
        network.until(lambda: network.heard)
        assert network.connected == 2
    finally:
        relay.close()
