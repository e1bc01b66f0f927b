"""The link to the topology manager: it follows each leader, and never returns to a deposed one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from heron.clock import monotonic_s
from heron.errors import HeronError
from heron.executor.container_keys import ContainerKeys
from heron.ipc import control_pb2 as pb
from heron.ipc.envelope import Envelope, body_of, control_frame, parse_control
from heron.ipc.guarded_hub import open_guarded_hub
from heron.ipc.keys import ClientKind, KeyRing, new_keys
from heron.ipc.locator import TManagerChannel
from heron.ipc.reactor import Reactor
from heron.ipc.socket import Hub, SocketContext
from heron_testing.relay import Relay


class Environment:
    """The hubs of an executor and of two topology managers, and the channel under test."""

    def __init__(self, folder: Path) -> None:
        self.reactor = Reactor()
        self.sockets = SocketContext(max_frame_bytes=-1)
        self.keys = new_keys()
        self.source = ContainerKeys(KeyRing.of(self.keys), 1)
        self.endpoints = [f"ipc://{folder}/t{number}" for number in range(2)]
        self.tmanagers = [self.sockets.hub(endpoint) for endpoint in self.endpoints]
        self.executor = self.sockets.hub(f"ipc://{folder}/executor")
        self.heard: list[str] = []
        self.connected = 0
        self.channel = TManagerChannel(
            self.reactor,
            self.sockets,
            f"ipc://{folder}/executor",
            keys=self.source,
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
def environment(tmp_path: Path) -> Iterator[Environment]:
    made = Environment(tmp_path)
    yield made
    made.sockets.close()


def say(hub: Hub, client: bytes, reason: str, epoch: int) -> None:
    hub.send(client, control_frame(Envelope(epoch=epoch, stop=pb.Stop(reason=reason))))


def test_the_channel_follows_the_location(environment: Environment) -> None:
    """Each leader receives a hello; `send` returns False while there is no leader."""
    assert not environment.channel.send(Envelope(stop=pb.Stop()))
    environment.locate(0, 1)
    first, hello = environment.read(environment.tmanagers[0])
    assert body_of(hello) == "stop"
    say(environment.tmanagers[0], first, "plan 1", 1)
    environment.until(lambda: environment.heard)
    environment.locate(1, 2)
    second, _ = environment.read(environment.tmanagers[1])
    say(environment.tmanagers[1], second, "plan 2", 2)
    environment.until(lambda: len(environment.heard) == 2)
    assert environment.heard == ["plan 1", "plan 2"]
    environment.locate(None, 2)
    environment.until(lambda: not environment.channel.send(Envelope(stop=pb.Stop())))


def test_an_older_epoch_is_refused(environment: Environment) -> None:
    """Messages of a deposed leader and an outdated location have no effect, and are counted."""
    environment.locate(0, 5)
    client, _ = environment.read(environment.tmanagers[0])
    say(environment.tmanagers[0], client, "deposed", 4)
    say(environment.tmanagers[0], client, "newer", 7)
    say(environment.tmanagers[0], client, "between", 6)
    environment.until(lambda: environment.channel.deposed == 2)
    assert environment.heard == ["newer"]
    environment.locate(1, 6)
    environment.locate(0, 7)
    say(environment.tmanagers[0], client, "last", 7)
    environment.until(lambda: len(environment.heard) == 2)
    assert environment.connected == 1


@pytest.mark.parametrize("away", [True, False])
def test_a_deposed_leader_that_resumes_is_refused_and_counted(environment: Environment, away: bool) -> None:
    """The process was stopped and answers earlier requests, whether it has a successor or not."""
    environment.locate(0, 1)
    client, _ = environment.read(environment.tmanagers[0])
    environment.locate(*((None, 1) if away else (1, 2)))
    environment.until(lambda: environment.connected == (1 if away else 2) and not environment.heard)
    if away:
        environment.until(lambda: not environment.channel.send(Envelope(stop=pb.Stop())))
    for _ in range(3):
        say(environment.tmanagers[0], client, "deposed", 1)
    environment.until(lambda: environment.channel.deposed == 3)
    environment.locate(1, 2)
    successor, _ = environment.read(environment.tmanagers[1])
    say(environment.tmanagers[1], successor, "leads", 2)
    environment.until(lambda: environment.heard)
    assert environment.heard == ["leads"]
    assert [(each.name, each.value) for each in environment.channel.metrics()] == [("deposed-messages", 3)]


def test_garbage_is_counted_and_does_not_end_the_process(environment: Environment) -> None:
    """It may come from the executor or from the topology manager."""
    environment.executor.send(environment.client, b"garbage")
    environment.locate(0, 1)
    client, _ = environment.read(environment.tmanagers[0])
    environment.tmanagers[0].send(client, b"")
    say(environment.tmanagers[0], client, "still here", 1)
    environment.until(lambda: environment.heard)
    assert environment.channel.refused == 2


def test_keys_that_cannot_be_taken_do_not_hide_the_location(
    environment: Environment, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The executor sends each location once, and the file of the keys may be away."""

    def unreadable(_sets: int) -> None:
        msg = "the spec file cannot be read"
        raise HeronError(msg)

    monkeypatch.setattr(environment.channel._keys, "take", unreadable)
    environment.locate(0, 1)
    _, hello = environment.read(environment.tmanagers[0])
    assert body_of(hello) == "stop"


def test_a_broken_connection_is_replaced_with_a_new_hello(environment: Environment) -> None:
    """The topology manager identifies a process by its connection, and cannot answer before the hello."""
    hub = open_guarded_hub(environment.sockets, "127.0.0.1", environment.keys.listening_to(ClientKind.MEMBER))
    environment.reactor.guard(hub)
    host, _, port = hub.endpoint.removeprefix("tcp://").partition(":")
    relay = Relay((host, int(port)))
    try:
        environment.endpoints[0] = "tcp://{}:{}".format(*relay.address)
        environment.locate(0, 1)
        first, _ = environment.read(hub)
        relay.cut()
        second, hello = environment.read(hub)
        assert first != second
        assert hello.stop.reason == "hello"
        say(hub, second, "welcome back", 1)
        environment.until(lambda: environment.heard)
        assert environment.connected == 2
    finally:
        relay.close()


def test_a_leader_with_unknown_keys_is_reached_when_the_keys_come(environment: Environment) -> None:
    """The executor sends the location again when it has written the keys."""
    new = new_keys()
    location = pb.TManagerLocation(endpoint=environment.endpoints[0], epoch=1, server_key=new.server.public)
    frame = control_frame(Envelope(tmanager_location=location))
    environment.executor.send(environment.client, frame)
    environment.locate(0, 0)  # an outdated location, after which the first one has been read
    environment.executor.send(environment.client, b"garbage")
    environment.until(lambda: environment.channel.refused == 1)
    assert environment.connected == 0
    environment.source.ring = environment.source.ring.beginning(new)
    environment.executor.send(environment.client, frame)
    environment.read(environment.tmanagers[0])
    assert environment.connected == 1


def test_a_leader_with_new_keys_at_the_same_endpoint_is_another_server(environment: Environment) -> None:
    """Its port may be fixed. The former connection has the former keys, and would be tried for ever."""
    new = new_keys()
    environment.source.ring = environment.source.ring.beginning(new)
    for epoch, keys in enumerate((environment.keys, new), 1):
        location = pb.TManagerLocation(endpoint=environment.endpoints[0], epoch=epoch, server_key=keys.server.public)
        environment.executor.send(environment.client, control_frame(Envelope(tmanager_location=location)))
        environment.read(environment.tmanagers[0])
        assert environment.connected == epoch
