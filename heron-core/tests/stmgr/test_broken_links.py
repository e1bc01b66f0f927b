"""The links between stream managers on a network that breaks them, and against strangers."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from heron.ipc.documents.metric_names import CONNECTIONS_REFUSED
from heron.ipc.endpoint import metricsmgr_endpoint
from heron.ipc.envelope import parse_control
from heron.ipc.frames.frame import (
    FrameKind,
    SegmentKind,
    frame_header,
    parse_frame_header,
    parse_segment,
    segment_routes,
)
from heron.ipc.frames.metrics_codec import record_of
from heron.ipc.frames.tracking import COUNTER_BITS, RootOutcome, ack_range, new_roots_derived, parse_settled
from heron.ipc.keys import ClientKeys, ClientKind, new_keys
from heron.ipc.socket import Inbox
from heron.spi.metricsink import Histogram
from heron_testing.relay import Relay
from heron_testing.waiting import wait_until

if TYPE_CHECKING:
    from conftest import Instance, Site

pytestmark = pytest.mark.leaks_nothing


def address_of(endpoint: str) -> tuple[str, int]:
    host, _, port = endpoint.removeprefix("tcp://").partition(":")
    return host, int(port)


@pytest.fixture
def relay(site: Site) -> Iterator[Relay]:
    """Container 1 reaches container 2 through this relay; both run and have a plan."""
    site.start(1)
    made = Relay(address_of(site.start(2).endpoint))
    site.address_of_peer[2] = "tcp://{}:{}".format(*made.address)
    site.plan()
    yield made
    made.close()


def cut_and_reconnect(relay: Relay) -> None:
    """Breaks the connection and waits for the next one. Data sent in between may be lost with the broken connection."""
    before = relay.accepted
    relay.cut()
    wait_until(lambda: relay.accepted > before)


def test_a_connection_that_breaks_without_data_under_way_loses_nothing(site: Site, relay: Relay) -> None:
    """The new session has new credit, and its hello shows that no frame is missing."""
    spout, bolt = site.registered(1), site.registered(3)
    for number in range(3):
        spout.send(site.tuples([3], b"%d" % number))
        assert bolt.payloads(1) == [b"%d" % number]
        cut_and_reconnect(relay)
    there = site.stmgrs[2].context.counters
    spout.send(site.tuples([3], b"x" * 9000), site.tuples([3], b"y" * 9000))
    assert len(bolt.payloads(2)) == 2
    assert there.lost_frames == there.refused_frames == 0


def test_frames_under_way_in_a_broken_connection_are_counted_as_lost(site: Site, relay: Relay) -> None:
    """The gap is noticed although the sequence restarts, and the credit of the lost frames is free again."""
    spout, bolt = site.registered(1), site.registered(3)
    spout.send(site.tuples([3], b"before"))
    assert bolt.payloads(1) == [b"before"]
    here, there = (site.stmgrs[container].context.counters for container in (1, 2))
    relay.swallows = True
    sent_bytes = here.bytes_to_peers
    spout.send(site.tuples([3], b"x" * 9000))  # nearly the whole window
    wait_until(lambda: here.bytes_to_peers > sent_bytes and relay.swallowed_bytes > 9000)
    relay.swallows = False
    cut_and_reconnect(relay)
    spout.send(site.tuples([3], b"y" * 9000))
    assert bolt.payloads(1) == [b"y" * 9000]
    assert there.lost_frames == 1


def test_frames_lost_in_a_break_fail_the_roots_in_flight(site: Site, relay: Relay) -> None:
    """The receiver reports missing frames to the stream manager of the roots. A break without loss fails no root."""
    spout, bolt = site.registered(1), site.registered(3)
    spout.send(site.tuples([3], b"before"))
    assert bolt.payloads(1) == [b"before"]
    send_acks(spout, new_roots_derived(1, 0, 99, 2, [3]))
    cut_and_reconnect(relay)
    spout.send(site.tuples([3], b"between"))
    assert bolt.payloads(1) == [b"between"]
    relay.swallows = True
    sent_bytes = site.stmgrs[1].context.counters.bytes_to_peers
    spout.send(site.tuples([3], b"x"))
    wait_until(lambda: site.stmgrs[1].context.counters.bytes_to_peers > sent_bytes and relay.swallowed_bytes > 0)
    assert settled(spout) == []
    relay.swallows = False
    relay.cut()
    wait_until(lambda: (RootOutcome.LOST, range(2)) in settled(spout))


def test_acks_without_a_connection_fail_the_roots_in_flight(site: Site) -> None:
    """The stream manager of the roots would wait for ever; it receives a loss when it is reached again."""
    home = Relay(address_of(site.start(1).endpoint))
    try:
        site.address_of_peer[1] = "tcp://{}:{}".format(*home.address)
        there = site.start(2)
        site.plan()
        spout, bolt = site.registered(1), site.registered(3)
        send_acks(spout, new_roots_derived(1, 0, 99, 2, [3]))
        spout.send(site.tuples([3], b"both links are there"))
        bolt.payloads(1)
        home.refuses = True  # otherwise the link may be restored before the first ack
        home.cut()

        def lost() -> bool:
            send_acks(bolt, ack_range(1 << COUNTER_BITS, 1, 3, 1))
            return there.context.counters.lost_acks > 0

        wait_until(lost)
        home.refuses = False
        wait_until(lambda: (RootOutcome.LOST, range(2)) in settled(spout))
    finally:
        home.close()


def test_data_that_a_peer_has_not_confirmed_is_lost_when_the_peer_is_replaced(site: Site, relay: Relay) -> None:
    """No process knows how much of it arrived; other stream managers receive a loss."""
    spout, bolt = site.registered(1), site.registered(3)
    spout.send(site.tuples([3], b"before"))
    assert bolt.payloads(1) == [b"before"]
    here = site.stmgrs[1].context.counters
    relay.swallows = True
    sent_bytes = here.bytes_to_peers
    spout.send(site.tuples([3], b"x"))
    wait_until(lambda: here.bytes_to_peers > sent_bytes and relay.swallowed_bytes > 0)
    site.stmgrs[2].close()
    cut_and_reconnect(relay)
    assert here.broken_links == 0
    del site.address_of_peer[2]
    site.start(2, incarnation=1)
    site.plan(version=2)
    wait_until(lambda: here.broken_links == 1)


def send_acks(instance: Instance, data: bytes) -> None:
    """Sends segments about roots."""
    instance.sequence += 1
    instance.channel.send(frame_header(FrameKind.ACK, instance.session, instance.sequence) + data)


def settled(instance: Instance) -> list[tuple[RootOutcome, range | list[int]]]:
    """The outcomes that the instance has received since the last call."""
    found = []
    while (frame := instance.channel.receive()) is not None:
        if parse_frame_header(frame)[0] == FrameKind.ACK:
            found += [parse_settled(frame, parse_segment(frame, start)) for start, _, _ in segment_routes(frame)]
    return found


def test_end_markers_are_repeated_after_a_break(site: Site, relay: Relay) -> None:
    """A task would wait for a lost one for ever."""
    spout, bolt = site.registered(1), site.registered(3)
    spout.send(site.tuples([3], b"before"))
    assert bolt.payloads(1) == [b"before"]
    relay.swallows = True
    sent_bytes = site.stmgrs[1].context.counters.bytes_to_peers
    spout.send(site.end_marker([3, 4]))
    wait_until(lambda: site.stmgrs[1].context.counters.bytes_to_peers > sent_bytes and relay.swallowed_bytes > 0)
    relay.swallows = False
    relay.cut()
    assert [parse_segment(data, 0).kind for data in bolt.segments()] == [SegmentKind.MARKER]


def refused(inbox: Inbox) -> dict[str, float]:
    """The refused connections in the newest record."""
    found: dict[str, float] = {}
    while frame := inbox.receive():
        for metric in record_of(parse_control(frame).metrics_publish).metrics:
            if metric.name == CONNECTIONS_REFUSED and not isinstance(metric.value, Histogram):
                found[metric.labels["reason"]] = metric.value
    return found


def test_a_scan_of_the_port_has_no_effect_and_is_counted(site: Site) -> None:
    """A stranger does not speak the protocol, or has no known key. Sessions are not affected."""
    inbox = site.sockets.inbox(metricsmgr_endpoint(site.run_dir, 2))
    here, there = site.start(1), site.start(2)
    site.plan()
    for data in (b"GET / HTTP/1.1\r\n\r\n", b"\0" * 64, b"\xff" * 64, b"", b"\xff\0\0\0\0\0\0\0\1\x7f\3\0NULL"):
        with socket.create_connection(address_of(there.endpoint)) as stranger, contextlib.suppress(OSError):
            stranger.settimeout(0.2)  # one of the texts starts a valid handshake, and is waited for
            stranger.sendall(data)
            while data and stranger.recv(4096):
                pass
    keys = new_keys()
    wrong = [
        keys.connecting_as(ClientKind.MEMBER),
        ClientKeys(site.keys.server.public, keys.member),
        site.keys.connecting_as(ClientKind.CONTROL),
        site.keys.connecting_as(ClientKind.READER),
    ]
    for number, each in enumerate(wrong):
        site.sockets.client_of(there.endpoint, b"w%d" % number, keys=each).send(b"let me in")
    # The client that expects another server fails before its own key is checked.
    wait_until(lambda: (found := refused(inbox)).get("unknown-key") == 3 and all(found.values()), what="all counted")
    spout, bolt = site.registered(1), site.registered(3)
    spout.send(site.tuples([3], b"fine"))
    assert bolt.payloads(1) == [b"fine"]
    assert here.context.counters.refused_frames == there.context.counters.refused_frames == 0
