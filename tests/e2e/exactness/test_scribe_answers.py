"""A Scribe collector in the simulator: when a client has its answer, and what becomes of tuples that fail."""

from __future__ import annotations

import socket
import struct
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import pytest

from heron.api import Bolt, Grouping, TopologyBuilder, TopologyContext, Tuple
from heron.errors import ConfigError
from heron.spi.driver import DriverRef
from heron_connector_scribe import ScribeSource, ScribeSpout, ServiceOptions
from heron_connector_scribe.column_spout import ScribeColumnSpout
from heron_simulator import Simulation
from heron_testing.fake_clock import FakeClock
from heron_testing.ports import free_port
from heron_testing.waiting import Eventually

SEEN: Counter[bytes] = Counter()
_WITHIN_S = 30.0
_ARROW = (DriverRef("serializer", "arrow", "heron_serializer_arrow.serializer:ArrowSerializer", {}),)


class PickyBolt(Bolt):
    """Fails each message as often as its last digit says; 9 is for ever."""

    def initialize(self, config: Mapping[str, Any], context: TopologyContext) -> None:
        SEEN.clear()

    def process(self, tup: Tuple) -> None:
        message = tup.values[2]
        SEEN[message] += 1
        often = int(message[-1:])
        if SEEN[message] <= often or often == 9:
            self.fail(tup)
        else:
            self.ack(tup)


@contextmanager
def running(
    config: Mapping[str, object] | None = None, spout: type[ScribeSpout] = ScribeSpout
) -> Iterator[tuple[Simulation, int]]:
    """A collector and the bolt; the port."""
    port = free_port()
    builder = TopologyBuilder("lines")
    builder.set_config({"topology.reliability.mode": "ATLEAST_ONCE", **(config or {})})
    lines = builder.add_spout("lines", spout, par=1, config=ServiceOptions(ports=(port,)).config())
    builder.add_bolt("picky", PickyBolt, par=1, inputs={lines: Grouping.SHUFFLE})
    with Simulation(builder, clock=FakeClock(), serializers=_ARROW) as simulation:
        yield simulation, port


def stepping(simulation: Simulation, holds: Callable[[], object]) -> Callable[[], object]:
    """What makes a step, and then looks."""

    def look() -> object:
        for _ in range(100):
            simulation.step()
            simulation.advance(0.1)
        return holds()

    return look


def log(port: int, *messages: bytes) -> socket.socket:
    """Send a call; the client waits."""
    entries = b"".join(struct.pack(">bhi", 11, 2, len(each)) + each + b"\0" for each in messages)
    body = struct.pack(">i", 3) + b"Log\x01" + struct.pack(">i", 1)
    body += struct.pack(">bhbi", 15, 1, 12, len(messages)) + entries + b"\0"
    client = socket.create_connection(("127.0.0.1", port))
    client.sendall(struct.pack(">i", len(body)) + body)
    client.setblocking(False)
    return client


def answered(client: socket.socket) -> bool:
    """Whether the answer OK is there."""
    try:
        return client.recv(24, socket.MSG_PEEK)[19:23] == bytes(4)
    except BlockingIOError:
        return False


def listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def test_what_fails_is_emitted_again_until_all_of_the_batch_is_acked(eventually: Eventually) -> None:
    """Only what failed; the client has its answer after that."""
    with running() as (simulation, port):
        eventually(stepping(simulation, lambda: listens(port)), _WITHIN_S)
        with log(port, b"a0", b"b2", b"c1") as client:
            eventually(stepping(simulation, lambda: answered(client)), _WITHIN_S)
    assert SEEN == {b"a0": 1, b"b2": 3, b"c1": 2}


def test_in_columns_calls_that_wait_together_are_one_root(eventually: Eventually) -> None:
    """What fails makes all of them come again, then each alone: a call that always fails holds only its own answer."""
    with running(spout=ScribeColumnSpout) as (simulation, port):
        eventually(stepping(simulation, lambda: listens(port)), _WITHIN_S)
        spout = simulation.component("lines")
        assert isinstance(spout, ScribeSpout)
        with log(port, b"a0", b"b2", b"c1") as client, log(port, b"d9") as other, log(port, b"e0") as third:
            eventually(lambda: spout.backlog() == 5, _WITHIN_S)
            eventually(stepping(simulation, lambda: answered(client) and answered(third)), _WITHIN_S)
            assert not answered(other)
    assert {message: SEEN[message] for message in (b"a0", b"b2", b"c1", b"e0")} == {
        b"a0": 3,
        b"b2": 3,
        b"c1": 3,
        b"e0": 2,
    }


def test_in_columns_effectively_once_a_call_that_comes_again_is_emitted_once(eventually: Eventually) -> None:
    """As in rows."""
    with running({"topology.reliability.mode": "EFFECTIVELY_ONCE"}, ScribeColumnSpout) as (simulation, port):
        eventually(stepping(simulation, lambda: listens(port)), _WITHIN_S)
        spout = simulation.component("lines")
        assert isinstance(spout, ScribeSpout)
        with log(port, b"a0", b"b0"):
            eventually(stepping(simulation, lambda: SEEN[b"b0"]), _WITHIN_S)
        with log(port, b"a0", b"b0") as again, log(port, b"c0"):
            eventually(stepping(simulation, lambda: SEEN[b"c0"]), _WITHIN_S)
            spout.pre_save("1")
            spout.post_save("1")
            eventually(stepping(simulation, lambda: answered(again)), _WITHIN_S)
    assert SEEN == {b"a0": 1, b"b0": 1, b"c0": 1}


def test_what_a_client_has_given_up_is_not_emitted_for_ever(eventually: Eventually) -> None:
    """The client keeps the batch, and will send it again."""
    with running() as (simulation, port):
        eventually(stepping(simulation, lambda: listens(port)), _WITHIN_S)
        with log(port, b"a9") as client:
            eventually(stepping(simulation, lambda: SEEN[b"a9"] > 3), _WITHIN_S)
            assert not answered(client)
        seen: list[int] = []

        def rests() -> bool:
            seen.append(SEEN[b"a9"])
            return len(seen) > 1 and seen[-1] == seen[-2]

        eventually(stepping(simulation, rests), _WITHIN_S)


def test_a_record_that_the_engine_gives_up_is_safe(eventually: Eventually) -> None:
    """It is a dead letter. Without the answer its client would send it for ever."""
    with running({"topology.replay.attempts": 2}) as (simulation, port):
        eventually(stepping(simulation, lambda: listens(port)), _WITHIN_S)
        with log(port, b"a0", b"b9") as client:
            eventually(stepping(simulation, lambda: answered(client)), _WITHIN_S)
        assert SEEN == {b"a0": 1, b"b9": 3}
        assert len(simulation.dead_letters("lines")) == 1


def test_effectively_once_a_call_that_comes_again_is_emitted_once(eventually: Eventually) -> None:
    """Its first client was too impatient for a checkpoint. The second one has the answer to both."""
    with running({"topology.reliability.mode": "EFFECTIVELY_ONCE"}) as (simulation, port):
        eventually(stepping(simulation, lambda: listens(port)), _WITHIN_S)
        spout = simulation.component("lines")
        assert isinstance(spout, ScribeSpout)
        with log(port, b"a0", b"b0"):
            eventually(stepping(simulation, lambda: SEEN[b"b0"]), _WITHIN_S)
        with log(port, b"a0", b"b0") as again, log(port, b"c0") as other:
            eventually(stepping(simulation, lambda: SEEN[b"c0"]), _WITHIN_S)
            spout.pre_save("1")
            with log(port, b"d0") as late:
                eventually(stepping(simulation, lambda: SEEN[b"d0"]), _WITHIN_S)
                assert not answered(again)
                assert not answered(other)
                spout.post_save("1")
                eventually(stepping(simulation, lambda: answered(again) and answered(other)), _WITHIN_S)
                assert not answered(late)
    assert SEEN == {b"a0": 1, b"b0": 1, b"c0": 1, b"d0": 1}


def test_a_pipeline_with_more_tasks_than_ports_is_refused() -> None:
    """Where it is written, not in its tasks."""
    source = ScribeSource(ServiceOptions(ports=(1463,)))
    assert source.partitions(1) == ["0"]
    with pytest.raises(ConfigError, match=r"ports: task 1 has no port; there are 1: \(1463,\); add one"):
        source.partitions(2)
