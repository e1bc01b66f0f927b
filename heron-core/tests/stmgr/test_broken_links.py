"""The links between stream managers on a network that breaks them, and against whom they are no links at all."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from heron.ipc.endpoint import metricsmgr_endpoint
from heron.ipc.envelope import parse_control
from heron.ipc.frame import SegmentKind, parse_segment
from heron.ipc.keys import ClientKeys, Speaker, new_keys
from heron.ipc.metric_names import CONNECTIONS_REFUSED
from heron.ipc.metrics_codec import record_of
from heron.ipc.socket import Inbox
from heron.spi.metricsink import Histogram
from heron.testing.pytest_plugin import wait_until

if TYPE_CHECKING:
    from conftest import Site

pytestmark = pytest.mark.leaks_nothing


class Relay:
    """A network between two processes: passes bytes on until it is cut, or swallows one direction's."""

    def __init__(self, endpoint: str) -> None:
        host, port = endpoint.removeprefix("tcp://").split(":")
        self._target = (host, int(port))
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.endpoint = f"tcp://127.0.0.1:{self._listener.getsockname()[1]}"
        self.swallows = False
        self.passed = 0
        self._open: list[socket.socket] = []
        self._threads: list[threading.Thread] = []
        self._start(self._accept)

    def cut(self) -> None:
        """Breaks every connection; new ones can be made."""
        for each in self._open:
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Ends it."""
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self.cut()
        for thread in self._threads:
            thread.join(10)
        for each in (self._listener, *self._open):
            each.close()

    def _start(self, work: object, *arguments: socket.socket) -> None:
        assert callable(work)
        self._threads.append(threading.Thread(target=work, args=arguments))
        self._threads[-1].start()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
                server = socket.create_connection(self._target)
            except OSError:
                return
            self._open += [client, server]
            self._start(self._pass, client, server)
            self._start(self._pass, server, client)

    def _pass(self, source: socket.socket, sink: socket.socket) -> None:
        there = sink.getpeername() == self._target
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                if not (there and self.swallows):
                    sink.sendall(data)
                    self.passed += len(data) if there else 0
        with contextlib.suppress(OSError):
            sink.shutdown(socket.SHUT_RDWR)


@pytest.fixture
def relay(site: Site) -> Iterator[Relay]:
    """Container 1 reaches container 2 by way of this; both run and have a plan."""
    site.start(1)
    made = Relay(site.start(2).endpoint)
    site.by_way_of[2] = made.endpoint
    site.plan()
    yield made
    made.close()


def test_a_connection_that_breaks_when_all_has_come_loses_nothing(site: Site, relay: Relay) -> None:
    """A new session begins with new credit, and its hello tells that no frame is missing."""
    spout, bolt = site.registered(1), site.registered(3)
    for number in range(3):
        spout.send(site.tuples([3], b"%d" % number))
        assert bolt.payloads(1) == [b"%d" % number]
        relay.cut()
    there = site.stmgrs[2].host.counters
    spout.send(site.tuples([3], b"x" * 9000), site.tuples([3], b"y" * 9000))
    assert len(bolt.payloads(2)) == 2
    assert there.lost_frames == there.refused_frames == 0


def test_what_was_on_its_way_when_a_connection_broke_is_counted_as_lost(site: Site, relay: Relay) -> None:
    """The gap shows although the sequence begins anew, and the room that the frames took is free again."""
    spout, bolt = site.registered(1), site.registered(3)
    spout.send(site.tuples([3], b"before"))
    assert bolt.payloads(1) == [b"before"]
    here, there = (site.stmgrs[container].host.counters for container in (1, 2))
    relay.swallows = True
    sent_bytes = here.bytes_to_peers
    spout.send(site.tuples([3], b"x" * 9000))  # nearly the whole window
    wait_until(lambda: here.bytes_to_peers > sent_bytes)
    relay.swallows = False
    relay.cut()
    spout.send(site.tuples([3], b"y" * 9000))
    assert bolt.payloads(1) == [b"y" * 9000]
    assert there.lost_frames == 1


def test_end_markers_come_again_after_a_break(site: Site, relay: Relay) -> None:
    """One that was swallowed would be waited for in vain."""
    spout, bolt = site.registered(1), site.registered(3)
    spout.send(site.tuples([3], b"before"))
    assert bolt.payloads(1) == [b"before"]
    relay.swallows = True
    sent_bytes = site.stmgrs[1].host.counters.bytes_to_peers
    spout.send(site.end_marker([3, 4]))
    wait_until(lambda: site.stmgrs[1].host.counters.bytes_to_peers > sent_bytes)
    relay.swallows = False
    relay.cut()
    assert [parse_segment(data, 0).kind for data in bolt.segments()] == [SegmentKind.MARKER]


def refused(inbox: Inbox) -> dict[str, float]:
    """What the newest record says of connections that were not let in."""
    found: dict[str, float] = {}
    while frame := inbox.receive():
        for metric in record_of(parse_control(frame).metrics_publish).metrics:
            if metric.name == CONNECTIONS_REFUSED and not isinstance(metric.value, Histogram):
                found[metric.labels["reason"]] = metric.value
    return found


def test_a_scan_of_the_port_changes_nothing_and_is_counted(site: Site) -> None:
    """Whatever a stranger sends is not the protocol, or not a known key; who is in session notices nothing."""
    inbox = site.sockets.inbox(metricsmgr_endpoint(site.run_dir, 2))
    here, there = site.start(1), site.start(2)
    site.plan()
    host, port = there.endpoint.removeprefix("tcp://").split(":")
    for data in (b"GET / HTTP/1.1\r\n\r\n", b"\0" * 64, b"\xff" * 64, b"", b"\xff\0\0\0\0\0\0\0\1\x7f\3\0NULL"):
        with socket.create_connection((host, int(port))) as stranger:
            stranger.sendall(data)
            stranger.shutdown(socket.SHUT_WR)
            stranger.settimeout(10)
            with contextlib.suppress(ConnectionError):
                while stranger.recv(4096):
                    pass
    keys = new_keys()
    wrong = [
        keys.connecting_as(Speaker.MEMBER),
        ClientKeys(site.keys.server.public, keys.member),
        site.keys.connecting_as(Speaker.CONTROL),
        site.keys.connecting_as(Speaker.READER),
    ]
    for number, each in enumerate(wrong):
        site.sockets.client_of(there.endpoint, b"w%d" % number, keys=each).send(b"let me in")
    # The one that expects another server never comes to the point where its own key is asked for.
    wait_until(lambda: (found := refused(inbox)).get("unknown-key") == 3 and all(found.values()), what="all counted")
    spout, bolt = site.registered(1), site.registered(3)
    spout.send(site.tuples([3], b"fine"))
    assert bolt.payloads(1) == [b"fine"]
    assert here.host.counters.refused_frames == there.host.counters.refused_frames == 0
