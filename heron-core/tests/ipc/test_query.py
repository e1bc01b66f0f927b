"""The client of the topology manager: requests, replies, and errors without a reply."""

from __future__ import annotations

import re
import socket
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest

from heron.clock import monotonic_s
from heron.errors import AccessError, RefusedError, RemoteProtocolError, UnreachableError
from heron.ipc import control_pb2 as pb
from heron.ipc.documents.metrics_table import MetricsRow, MetricsSeries, MetricsValue, encode_metrics, table_of
from heron.ipc.documents.status import TopologyStatus, encode_status
from heron.ipc.envelope import Envelope, control_frame, parse_control
from heron.ipc.guarded_hub import open_guarded_hub
from heron.ipc.keys import ClientKeys, ClientKind, new_keys
from heron.ipc.query import TManagerClient
from heron.ipc.reactor import Reactor
from heron.ipc.socket import SocketContext
from heron.ipc.watched_channel import open_watched_channel
from heron_testing.waiting import wait_until

LONG_S = 20.0  # no test takes this long
STATUS = TopologyStatus("words", "words-1", "running", 1.0)


def answer_to(question: Envelope, status: TopologyStatus = STATUS) -> bytes:
    """The reply of a topology manager."""
    reply = pb.StatusReply(request_id=question.status_request.request_id, document=encode_status(status))
    return control_frame(Envelope(epoch=1, status_reply=reply))


class Values:
    """Reads all values of each task."""

    def __init__(self) -> None:
        self.of_tasks: dict[int, list[float]] = {}

    def of_owner(self, component: str, task_id: int, process: str) -> list[float]:
        assert (component, process) == ("count", "count-7")
        return self.of_tasks.setdefault(task_id, [])

    def of_series(self, series: MetricsSeries) -> Callable[[list[float], MetricsValue], None]:
        assert series.name == "execute-count"
        return lambda values, each: values.append(each.value)


class TManager:
    """The socket of a topology manager on its own thread; `answer` makes the replies, and None means no reply."""

    def __init__(self, linger_s: float = 0.0) -> None:
        self.keys = new_keys()
        self._linger_s = linger_s
        self.answer: Callable[[Envelope], bytes | None] = answer_to
        self.heard = threading.Event()
        self._reactor = Reactor()
        self._sockets = SocketContext(max_frame_bytes=-1)
        self._hub = open_guarded_hub(self._sockets, "127.0.0.1", self.keys.listening_to(*ClientKind))
        self.endpoint = self._hub.endpoint
        self._reactor.guard(self._hub)
        self._reactor.on_readable(self._hub, self._read)
        self._asker = b""
        self._thread = threading.Thread(target=self._reactor.run)
        self._thread.start()

    def client(self, keys: ClientKeys | None = None) -> TManagerClient:
        """A client as a command uses it."""
        return TManagerClient(self.endpoint, keys or self.keys.connecting_as(ClientKind.CONTROL))

    def say(self, frame: bytes) -> None:
        """Sends a frame to the last client."""
        self._hub.send(self._asker, frame)

    def close(self) -> None:
        """Closes the sockets without a message, as when the process is killed. Idempotent."""
        if self._thread.is_alive():
            self._reactor.stop()
            self._thread.join()
            if not self._linger_s:
                self._hub.close()
            self._sockets.close(self._linger_s)

    def _read(self) -> None:
        while (message := self._hub.receive_from()) is not None:
            self._asker, frame, _ = message
            self.heard.set()
            if (reply := self.answer(parse_control(frame))) is not None:
                self.say(reply)


@pytest.fixture
def tmanager() -> Iterator[TManager]:
    made = TManager()
    yield made
    made.close()


def test_requests_get_their_replies(tmanager: TManager) -> None:
    """One connection serves several requests of different kinds."""
    row = MetricsRow("count", 0, "count", "execute-count", "counter", "tuples", 3.0)
    with tmanager.client() as client:
        assert client.status(LONG_S) == STATUS
        assert client.status(LONG_S) == STATUS

        def metrics(question: Envelope) -> bytes:
            asked = question.metrics_request
            assert (asked.component, asked.task_id, asked.by_task) == ("count", 5, True)
            reply = pb.MetricsReply(request_id=asked.request_id, document=encode_metrics(table_of((row,))))
            return control_frame(Envelope(metrics_reply=reply))

        tmanager.answer = metrics
        assert client.metrics("count", 5, by_task=True, timeout_s=LONG_S) == (row,)


def test_metrics_of_some_names_are_read_one_by_one(tmanager: TManager) -> None:
    """A window of 10,000 tasks has too many rows to hold them all as they come."""
    row = MetricsRow("count", 7, "count-7", "execute-count", "counter", "tuples", 3.0)

    def metrics(question: Envelope) -> bytes:
        asked = question.metrics_request
        assert (asked.component, asked.task_id, asked.by_task) == ("", 0, True)
        assert list(asked.names) == ["emit-count", "execute-count"]
        document = encode_metrics(table_of((row, row))) if asked.request_id == 1 else b'[{"name": 1}]'
        return control_frame(Envelope(metrics_reply=pb.MetricsReply(request_id=asked.request_id, document=document)))

    tmanager.answer = metrics
    names = {"execute-count", "emit-count"}
    with tmanager.client() as client:
        values = Values()
        client.read_task_metrics(names, values, LONG_S)
        assert values.of_tasks == {7: [3.0, 3.0]}
        with pytest.raises(RemoteProtocolError, match="metrics of 13 bytes cannot be read"):
            client.read_task_metrics(names, values, LONG_S)


def test_an_unknown_key_and_another_server_key_have_different_errors(tmanager: TManager) -> None:
    """Both errors come at once, because waiting does not help. Their remedies differ."""
    stranger, own = new_keys().connecting_as(ClientKind.CONTROL), tmanager.keys.connecting_as(ClientKind.CONTROL)
    for keys, why in (
        (replace(own, pair=stranger.pair), "it does not know this key"),
        (replace(own, server_public=stranger.server_public), "the process that listens there has other keys"),
        (stranger, "the process that listens there has other keys"),
    ):
        began_s = monotonic_s()
        with tmanager.client(keys) as client, pytest.raises(AccessError, match=why):
            client.change_state("killed", LONG_S)
        assert monotonic_s() - began_s < LONG_S / 2
    assert not tmanager.heard.is_set()


def test_an_endpoint_without_a_process_fails_at_once() -> None:
    """The topology manager was killed, and the state manager still has its location."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        endpoint = f"tcp://127.0.0.1:{taken.getsockname()[1]}"  # bound, but it does not listen
        with (
            TManagerClient(endpoint, new_keys().connecting_as(ClientKind.READER)) as client,
            pytest.raises(UnreachableError, match="no process listens there"),
        ):
            client.status(LONG_S)


def test_the_last_reply_before_the_end_of_a_connection_is_received() -> None:
    """The reply to a kill comes with the end of the connection; both may arrive before the command reads."""
    for _ in range(20):
        tmanager = TManager(linger_s=LONG_S)
        sockets = SocketContext(max_frame_bytes=-1)
        channel = open_watched_channel(sockets, tmanager.endpoint, tmanager.keys.connecting_as(ClientKind.CONTROL))
        try:
            channel.send(control_frame(Envelope(status_request=pb.StatusRequest(request_id=1))))
            assert tmanager.heard.wait(LONG_S)
            tmanager.close()
            assert channel.wait(LONG_S)
            assert channel.receive() is not None
        finally:
            tmanager.close()
            channel.close()
            sockets.close()


def test_the_death_of_the_topology_manager_before_its_reply_fails_at_once(tmanager: TManager) -> None:
    """The command does not wait for a reply that cannot come; later requests fail, too."""
    tmanager.answer = lambda _: None

    def end_when_asked() -> None:
        if tmanager.heard.wait(LONG_S):
            tmanager.close()

    with tmanager.client() as client:
        killer = threading.Thread(target=end_when_asked)
        killer.start()
        with pytest.raises(UnreachableError, match="it ended the connection"):
            client.change_state("paused", LONG_S)
        killer.join()
        with pytest.raises(UnreachableError, match="it ended the connection"):
            client.status(LONG_S)


def test_a_silent_topology_manager_fails_after_the_time_limit(tmanager: TManager) -> None:
    """It hangs, or another program listens there that sends nothing."""
    tmanager.answer = lambda _: None
    with tmanager.client() as client:
        for limit_s, shown in ((0.2, "0.2"), (0.0412345, "0.041")):  # the rest of a longer limit may be short
            with pytest.raises(UnreachableError, match=f"nothing came within {re.escape(shown)} s"):
                client.status(limit_s)
    with socket.create_server(("127.0.0.1", 0)) as foreign:
        endpoint = f"tcp://127.0.0.1:{foreign.getsockname()[1]}"
        with (
            TManagerClient(endpoint, tmanager.keys.connecting_as(ClientKind.READER)) as client,
            pytest.raises(UnreachableError, match=r"nothing came within 0\.2 s"),
        ):
            client.status(0.2)


def test_a_late_reply_is_not_taken_for_the_reply_to_the_next_request(tmanager: TManager) -> None:
    """It arrives during the next request."""
    late: list[bytes] = []

    def keep(question: Envelope) -> None:
        late.append(answer_to(question, STATUS))

    def both(question: Envelope) -> bytes:
        tmanager.say(late[0])
        return answer_to(question, replace(STATUS, plan_version=2))

    with tmanager.client() as client:
        tmanager.answer = keep
        with pytest.raises(UnreachableError):
            client.status(0.5)
        wait_until(lambda: late)
        tmanager.answer = both
        assert client.status(LONG_S).plan_version == 2


def test_a_reply_that_has_arrived_counts_after_the_time_limit(
    tmanager: TManager, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A command that was stopped, or waits for a processor, could not read it earlier."""
    with tmanager.client() as client:

        def clock() -> Iterator[float]:
            yield 0.0
            assert client._channel.raw.poll(int(LONG_S * 1000)), "no answer"
            yield 2 * LONG_S

        monkeypatch.setattr("heron.ipc.query.monotonic_s", clock().__next__)
        assert client.status(LONG_S) == STATUS


def test_a_refusal_is_raised_with_its_reason(tmanager: TManager) -> None:
    """A refusal without a request number comes from a process that could not read the request."""
    tmanager.answer = lambda question: control_frame(
        Envelope(refused=pb.Refused(request_id=question.change_state.request_id, reason="it is finished"))
    )
    with tmanager.client() as client:
        with pytest.raises(RefusedError, match="it is finished"):
            client.change_state("paused", LONG_S)
        tmanager.answer = lambda _: control_frame(Envelope(refused=pb.Refused(reason="no known body")))
        with pytest.raises(RefusedError, match="no known body; it may be of another version"):
            client.change_state("paused", LONG_S)


@pytest.mark.parametrize("reply", [b"", b"\x02" * 64, b"\xff" * 40])
def test_a_reply_of_another_wire_version_names_the_cause(tmanager: TManager, reply: bytes) -> None:
    """Another version of heron-core may run the topology."""
    tmanager.answer = lambda _: reply
    with tmanager.client() as client, pytest.raises(RemoteProtocolError, match="another version of heron-core"):
        client.status(LONG_S)
