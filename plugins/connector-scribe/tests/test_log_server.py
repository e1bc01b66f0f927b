"""The server of a collector with real clients and with hostile ones. A thread of the test stands for the topology."""

from __future__ import annotations

import io
import socket
import struct
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest
import thriftpy2
from collectors import Collector, asked_counter, call, ended, reply
from thriftpy2.protocol.binary import TBinaryProtocolFactory
from thriftpy2.rpc import make_client
from thriftpy2.transport.framed import TFramedTransportFactory

from heron.clock import monotonic_s, wall_s
from heron.errors import ConfigError, ConnectorError
from heron.spi.metricsink import MetricsRecord
from heron_connector_scribe import ServiceOptions, announced
from heron_connector_scribe.log_server import LogServer
from heron_metricsink_scribe import ScribeSink
from heron_metricsink_scribe.client import Answer
from heron_testing.contracts.metricsink import AT_S, EMITTED, SOURCE, STARTED
from heron_testing.ports import free_port
from heron_testing.waiting import Eventually, wait_until
from heron_testing_servers.scribe_clients import ScribeClients

pytestmark = pytest.mark.servers

_MIB = 2**20
_STARTS_S = 30.0
_FB303 = "service fb303 { map<string, i64> getCounters() map<string, string> getOptions() i64 aliveSince() }"


# ── real clients


@pytest.mark.parametrize("mode", ["ATMOST_ONCE", "ATLEAST_ONCE", "EFFECTIVELY_ONCE"])
@pytest.mark.parametrize("kind", ScribeClients.kinds)
def test_real_client_logs(make: Callable[..., Collector], scribe_clients: ScribeClients, kind: str, mode: str) -> None:
    """Both forms of the head of a message, and text that is not ASCII."""
    collector = make(mode)
    lines = [f"line {number} äß" for number in range(250)]
    counts = scribe_clients.log(kind, [collector.address], "web", lines, 100).finished()
    assert counts == {"ok": 3, "try-later": 0, "errors": 0}
    wanted = [("web", 0, f"{line}\n".encode()) for line in lines]
    wait_until(lambda: len(collector.entries) == len(wanted), _STARTS_S, "all entries")
    assert collector.entries == wanted


def test_real_client_asks_how_the_collector_is(make: Callable[..., Collector], scribe_clients: ScribeClients) -> None:
    """``fb303`` is what monitoring of Scribe asks."""
    collector = make()
    found = scribe_clients.log("facebook status", [collector.address], "web", ["a", "b"], 10).finished()
    assert (found["name"], found["status"], found["messages"], found["details"]) == ("lines", 2, 2, "")
    interface = thriftpy2.load_fp(io.StringIO(_FB303), "fb303_thrift")
    client = make_client(
        interface.fb303,
        *collector.address,
        proto_factory=TBinaryProtocolFactory(),  # type: ignore[no-untyped-call]
        trans_factory=TFramedTransportFactory(),
    )
    counters = client.getCounters()
    assert (counters["messages"], counters["ok"], counters["connections"]) == (2, 1, 1)
    assert client.getOptions() == {}
    assert 0 <= wall_s() - client.aliveSince() < 60
    client.close()


def test_the_metrics_sink_delivers(make: Callable[..., Collector]) -> None:
    """Metrics and events of another topology; the check of the sink sends a batch without messages."""
    collector = make()
    host, port = collector.address
    sink = ScribeSink.open({"host": host, "port": port})
    assert sink.check(10.0) == f"Scribe at {host}:{port}"
    sink.process(MetricsRecord(SOURCE, AT_S, (EMITTED,), (STARTED,)))
    sink.flush()
    sink.close()
    assert [category for category, _, _ in collector.entries] == ["heron_metrics", "heron_events"]


# ── back pressure


def test_a_topology_that_takes_nothing_makes_clients_try_later(make: Callable[..., Collector]) -> None:
    """Nothing of such a call was taken, so the same call again is no double. All is well when it goes on."""
    collector = make(queue_s=0.05)
    collector.paused.set()
    with collector.connect() as client:
        client.sendall(call(b"a", b"b", seqid=5))
        assert reply(client) == (5, Answer.TRY_LATER)
        assert collector.entries == []
        collector.paused.clear()
        client.sendall(call(b"a", b"b", seqid=6))
        assert reply(client) == (6, Answer.OK)
    assert [message for _, _, message in collector.entries] == [b"a", b"b"]
    assert (collector.refused("too-late"), collector.server.counts["try-later"]) == (1, 1)


def test_memory_is_bounded_while_nothing_is_taken(make: Callable[..., Collector], eventually: Eventually) -> None:
    """Bytes of calls beyond the limit are not kept; their clients hear TRY_LATER when the call has passed.

    The kernel takes whole calls before the collector reads any of them, and then the collector reads all of them in
    turn. So the two calls that fit may be those of any two clients.
    """
    collector = make(pending_bytes=8 * _MIB, frame_bytes=4 * _MIB, queue_s=600.0)
    collector.paused.set()
    before = psutil.Process().memory_info().rss
    block = bytes(1000) * 3000  # some 3 MB
    clients = [collector.connect() for _ in range(40)]
    for client in clients:
        client.sendall(call(block))
        assert collector.server.intake.held_bytes <= 8 * _MIB + 300_000
    eventually(lambda: collector.refused("no-room") == 38, _STARTS_S)
    assert collector.server.intake.waiting_messages == 2
    assert psutil.Process().memory_info().rss - before < 60 * _MIB
    collector.paused.clear()
    assert Counter(reply(client)[1] for client in clients) == {Answer.OK: 2, Answer.TRY_LATER: 38}
    clients[5].sendall(call(block))
    assert reply(clients[5])[1] is Answer.OK
    wait_until(lambda: collector.server.intake.held_bytes == 0, _STARTS_S, "nothing is held")
    for client in clients:
        client.close()
    assert collector.refused("no-room") == 38


def test_at_most_once_the_answer_comes_at_once(make: Callable[..., Collector]) -> None:
    """OK means that the batch waits in memory; TRY_LATER that it does not."""
    collector = make("ATMOST_ONCE", pending_bytes=65_536, frame_bytes=60_000)
    collector.paused.set()
    with collector.connect() as client:
        answers = []
        for seqid in range(4):
            client.sendall(call(bytes(30_000), seqid=seqid))
            answers.append(reply(client)[1])
    assert answers == [Answer.OK, Answer.OK, Answer.TRY_LATER, Answer.TRY_LATER]
    collector.paused.clear()
    wait_until(lambda: len(collector.entries) == 2, _STARTS_S, "what was accepted")


def test_at_most_once_what_has_its_ok_does_not_expire(make: Callable[..., Collector], eventually: Eventually) -> None:
    """A topology that is paused for longer than `queue_s` loses nothing of it."""
    collector = make("ATMOST_ONCE", queue_s=0.05, frame_s=0.3)
    collector.paused.set()
    with collector.connect() as client:
        for seqid in range(3):
            client.sendall(call(b"%d" % seqid, seqid=seqid))
            assert reply(client) == (seqid, Answer.OK)
        with collector.connect() as stalled:  # the sweep that closes it has also looked for calls that waited
            stalled.sendall(call(b"x")[:-1])
            assert ended(stalled)
    collector.paused.clear()
    eventually(lambda: len(collector.entries) == 3, _STARTS_S)
    assert collector.refused("too-late") == 0


def test_answers_have_the_order_of_the_calls(make: Callable[..., Collector]) -> None:
    """Of a client that does not wait for them."""
    collector = make()
    with collector.connect() as client:
        client.sendall(b"".join(call(b"%d" % seqid, seqid=seqid) for seqid in range(50)))
        assert [reply(client) for _ in range(50)] == [(seqid, Answer.OK) for seqid in range(50)]
    assert [message for _, _, message in collector.entries] == [b"%d" % seqid for seqid in range(50)]


# ── hostile clients


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (b"GET / HTTP/1.1\r\n\r\n", "too-large"),
        (struct.pack(">i", 100 * _MIB), "too-large"),
        (struct.pack(">i", -1), "malformed"),
        (struct.pack(">i", 0), "malformed"),
        (struct.pack(">i", 8) + bytes(8), "malformed"),
        (call(b"x")[:-9] + bytes([255]) * 9, "malformed"),
        (asked_counter(struct.pack(">bhi", 8, 7, 1) * 2 + b"\0"), "malformed"),
        (asked_counter(b"\x0b"), "malformed"),
        (struct.pack(">i", 100) + bytes(3), "stalled"),
        (bytes(2), "stalled"),
    ],
)
def test_what_is_no_call_ends_its_connection(make: Callable[..., Collector], data: bytes, kind: str) -> None:
    """It is counted by its kind, and other clients do not notice."""
    collector = make(frame_s=0.3)
    with collector.connect() as client, collector.connect() as other:
        client.sendall(data)
        assert ended(client)
        other.sendall(call(b"fine"))
        assert reply(other) == (1, Answer.OK)
    assert collector.refused(kind) == 1
    assert sum(count for name, count in collector.server.counts.items() if name.startswith("refused")) == 1


def test_an_error_of_the_collector_ends_one_connection(
    make: Callable[..., Collector], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The others do not notice; the log has the traceback once."""

    def fails(*_: object) -> bytes:
        msg = "a fault"
        raise RuntimeError(msg)

    collector = make()
    monkeypatch.setattr("heron_connector_scribe.service_status.ServiceStatus.reply", fails)
    for _ in range(2):
        with collector.connect() as client:
            client.sendall(asked_counter(b"\0"))
            assert ended(client)
    with collector.connect() as other:
        other.sendall(call(b"fine"))
        assert reply(other) == (1, Answer.OK)
    assert collector.refused("failed") == 2
    assert caplog.text.count("RuntimeError('a fault')") == caplog.text.count("Traceback") == 1


def test_a_thread_that_ends_by_an_error_is_told_and_replaced(
    make: Callable[..., Collector], monkeypatch: pytest.MonkeyPatch, eventually: Eventually
) -> None:
    """The spout and the reader call `start` each time. Clients of open calls keep their batches."""
    collector = make()

    def fails(_: object) -> None:
        msg = "a fault"
        raise RuntimeError(msg)

    def raises() -> bool:
        try:
            collector.server.start()
        except ConnectorError as error:
            return "'lines' has closed its connections by an error of its own, RuntimeError('a fault')" in str(error)
        return False

    with monkeypatch.context() as broken, collector.connect() as client:
        broken.setattr("heron_connector_scribe.intake.Intake.answers", fails)
        eventually(raises, _STARTS_S)
        assert ended(client)
        with pytest.raises(ConnectionRefusedError):
            collector.connect()
    collector.server.start()
    eventually(lambda: collector.server.port == collector.address[1], _STARTS_S)
    with collector.connect() as again:
        again.sendall(call(b"fine"))
        assert reply(again) == (1, Answer.OK)


def test_a_message_of_100_mb_costs_nothing(make: Callable[..., Collector]) -> None:
    """It is refused by its length, before a buffer is made for it."""
    collector = make()
    large = bytes(100 * _MIB)
    before = psutil.Process().memory_info().rss
    with collector.connect() as client:
        client.sendall(struct.pack(">i", 100 * _MIB))
        with pytest.raises(ConnectionError):
            client.sendall(large)
    assert psutil.Process().memory_info().rss - before < 10 * _MIB
    assert collector.refused("too-large") == 1


def test_too_many_messages_are_put_off(make: Callable[..., Collector]) -> None:
    """A client that makes smaller batches of it, as the metrics sink does, is served."""
    collector = make(batch_messages=10)
    with collector.connect() as client:
        client.sendall(call(*[b"x"] * 11) + call(*[b"x"] * 10, seqid=2))
        assert [reply(client), reply(client)] == [(1, Answer.TRY_LATER), (2, Answer.OK)]
    assert collector.refused("too-many-messages") == 1


def test_a_client_that_reads_no_answers_is_closed(make: Callable[..., Collector]) -> None:
    """Its answers would fill the memory."""
    collector = make()
    asked = struct.pack(">i", 11) + b"getCounters\x01" + struct.pack(">i", 1) + b"\0"
    with collector.connect() as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        with pytest.raises(ConnectionError):
            client.sendall((struct.pack(">i", len(asked)) + asked) * 500_000)
    assert collector.refused("unread") == 1


def test_unknown_method_is_answered(make: Callable[..., Collector]) -> None:
    """The connection stays, as with a server that Thrift generates; a call without an answer has none."""
    collector = make()
    oneway = struct.pack(">i", 8) + b"shutdown\x04" + struct.pack(">i", 1) + b"\0"
    unknown = struct.pack(">i", 8) + b"frobnico\x01" + struct.pack(">i", 2) + b"\0"
    with collector.connect() as client:
        client.sendall(struct.pack(">i", len(oneway)) + oneway + struct.pack(">i", len(unknown)) + unknown)
        assert b"unknown method 'frobnico'" in client.recv(1000)
        client.sendall(call(b"x", seqid=3))
        assert reply(client) == (3, Answer.OK)


def test_ten_thousand_connections(make: Callable[..., Collector], eventually: Eventually) -> None:
    """Those above the limit are closed at once; the others are served, and memory stays small."""
    collector = make(connections=1000, frame_s=600.0)
    before = psutil.Process().memory_info().rss
    served = [collector.connect() for _ in range(1000)]
    others = [collector.connect() for _ in range(9000)]
    eventually(lambda: collector.refused("connections") == 9000, 60.0)
    assert psutil.Process().memory_info().rss - before < 60 * _MIB
    for client in (served[0], served[-1]):
        client.sendall(call(b"x"))
        assert reply(client) == (1, Answer.OK)
    assert ended(others[0])
    assert ended(others[-1])
    for each in (*served, *others):
        each.close()
    with_room = collector.connect
    eventually(lambda: not ended_soon(with_room()), 60.0)


def test_idle_connections_do_not_shut_others_out(make: Callable[..., Collector], eventually: Eventually) -> None:
    """The one that has been idle the longest makes room, but none whose call waits or is under way."""
    collector = make(connections=3, frame_s=0.2, queue_s=600.0)
    collector.paused.set()
    with collector.connect() as waiting, collector.connect() as idle, collector.connect() as later:
        waiting.sendall(call(b"x"))
        for client in (idle, later):
            client.sendall(call())
            assert reply(client)[1] is Answer.OK
        with_room = collector.connect
        eventually(lambda: answers_empty_call(with_room()), _STARTS_S)
        assert ended(idle)
        assert answers_empty_call(later)
        collector.paused.clear()
        assert reply(waiting) == (1, Answer.OK)
    assert collector.refused("connections") >= 1


def answers_empty_call(client: socket.socket) -> bool:
    with client:
        try:
            client.sendall(call())
            return reply(client)[1] is Answer.OK
        except (AssertionError, ConnectionError):
            return False


def ended_soon(client: socket.socket) -> bool:
    with client:
        try:
            client.sendall(call(b"again"))
            return reply(client)[1] is not Answer.OK
        except (AssertionError, ConnectionError):
            return True


# ── places


def test_port_in_use_is_waited_for(make: Callable[..., Collector], tmp_path: Path, eventually: Eventually) -> None:
    """The former process of a task, or the task that moves away, may still have it."""
    first = make()
    second = LogServer(
        ServiceOptions(ports=(first.server.port,), announce=str(tmp_path / "other")), 0, "l", "ATMOST_ONCE"
    )
    second.start()
    assert (second.port, second.take_problem()) == (0, "")
    first.server.close()
    eventually(lambda: second.port == first.server.port, 30.0)
    assert announced(tmp_path / "other") == [first.address]
    second.close()
    assert announced(tmp_path / "other") == []


def test_an_address_of_another_machine_is_a_problem_that_is_told_once() -> None:
    """The status of the topology shows it; it may be mended while the topology runs."""
    server = LogServer(ServiceOptions(ports=(free_port(),), host="192.0.2.1"), 0, "lines", "ATMOST_ONCE")
    server.start()
    told: list[str] = []
    began_s = monotonic_s()
    while not told and monotonic_s() - began_s < _STARTS_S:
        told += [text for text in [server.take_problem()] if text]
    assert "source 'lines' cannot listen at 192.0.2.1" in told[0]
    assert server.take_problem() == ""
    server.close()


# ── options


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, r"heron\.connector\.scribe\.ports: missing"),
        ({"ports": []}, r"heron\.connector\.scribe\.ports"),
        ({"ports": [0]}, r"ports: 0 stands alone, as \(0,\), and needs the folder `announce`"),
        ({"ports": [0, 1463], "announce": "/a"}, r"ports: 0 stands alone"),
        ({"ports": [70_000]}, r"ports"),
        ({"ports": [1463], "frame_bytes": 70_000, "pending_bytes": 65_536}, r"frame_bytes: 70000 bytes do not fit"),
        ({"ports": [1463], "port": 1}, r"port: unknown"),
    ],
)
def test_option_out_of_range_is_refused(options: dict[str, object], message: str) -> None:
    """Where the topology is built, not in its tasks."""
    with pytest.raises(ConfigError, match=message):
        ServiceOptions.of(options)
