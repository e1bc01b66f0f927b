"""How a command asks, and what it is told when there is no answer."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest

from heron.clock import monotonic_s
from heron.errors import AccessError, RefusedError, RemoteProtocolError, UnreachableError
from heron.ipc import control_pb2 as pb
from heron.ipc.envelope import Envelope, control_frame, parse_control
from heron.ipc.guarded_hub import open_guarded_hub
from heron.ipc.keys import ClientKeys, Speaker, new_keys
from heron.ipc.metrics_table import MetricsRow, encode_metrics
from heron.ipc.query import TManagerClient
from heron.ipc.reactor import Reactor
from heron.ipc.socket import SocketContext
from heron.ipc.status import TopologyStatus, encode_status
from heron.ipc.watched_channel import open_watched_channel
from heron_testing.pytest_plugin import wait_until

LONG_S = 20.0  # nothing here takes so long
STATUS = TopologyStatus("words", "words-1", "running", 1.0)


def answer_to(question: Envelope, status: TopologyStatus = STATUS) -> bytes:
    """What a topology manager answers."""
    reply = pb.StatusReply(request_id=question.status_request.request_id, document=encode_status(status))
    return control_frame(Envelope(epoch=1, status_reply=reply))


class TManager:
    """A topology manager's socket on a thread of its own; `answer` makes the answers, None for none."""

    def __init__(self, linger_s: float = 0.0) -> None:
        self.keys = new_keys()
        self._linger_s = linger_s
        self.answer: Callable[[Envelope], bytes | None] = answer_to
        self.heard = threading.Event()
        self._reactor = Reactor()
        self._sockets = SocketContext()
        self._hub = open_guarded_hub(self._sockets, "127.0.0.1", self.keys.listening_to(*Speaker))
        self.endpoint = self._hub.endpoint
        self._reactor.guard(self._hub)
        self._reactor.on_readable(self._hub, self._read)
        self._asker = b""
        self._thread = threading.Thread(target=self._reactor.run)
        self._thread.start()

    def client(self, keys: ClientKeys | None = None) -> TManagerClient:
        """A command's view of it."""
        return TManagerClient(self.endpoint, keys or self.keys.connecting_as(Speaker.CONTROL))

    def say(self, frame: bytes) -> None:
        """Sends to who asked last."""
        self._hub.send(self._asker, frame)

    def close(self) -> None:
        """Ends it as a killed process ends: its sockets are closed and nothing is said. Idempotent."""
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


def test_a_question_is_answered(tmanager: TManager) -> None:
    """Several on one connection, each with its own kind of answer."""
    row = MetricsRow("count", 0, "count", "execute-count", "counter", "tuples", 3.0)
    with tmanager.client() as client:
        assert client.status(LONG_S) == STATUS
        assert client.status(LONG_S) == STATUS

        def metrics(question: Envelope) -> bytes:
            asked = question.metrics_request
            assert (asked.component, asked.task_id, asked.by_task) == ("count", 5, True)
            reply = pb.MetricsReply(request_id=asked.request_id, document=encode_metrics((row,)))
            return control_frame(Envelope(metrics_reply=reply))

        tmanager.answer = metrics
        assert client.metrics("count", 5, by_task=True, timeout_s=LONG_S) == (row,)


def test_a_key_that_is_unknown_is_told_from_another_topology(tmanager: TManager) -> None:
    """Both at once and by name: waiting does not help, and the remedies differ."""
    stranger, own = new_keys().connecting_as(Speaker.CONTROL), tmanager.keys.connecting_as(Speaker.CONTROL)
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


def test_nobody_at_the_endpoint_is_known_at_once() -> None:
    """Its topology manager was killed, and the state manager does not know yet."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        endpoint = f"tcp://127.0.0.1:{taken.getsockname()[1]}"  # bound, and nobody listens
        with (
            TManagerClient(endpoint, new_keys().connecting_as(Speaker.READER)) as client,
            pytest.raises(UnreachableError, match="no process listens there"),
        ):
            client.status(LONG_S)


def test_the_last_words_of_one_that_leaves_are_heard() -> None:
    """The answer to a kill comes with the end of the connection: both may be there before the command looks."""
    for _ in range(20):
        tmanager = TManager(linger_s=LONG_S)
        sockets = SocketContext()
        channel = open_watched_channel(sockets, tmanager.endpoint, tmanager.keys.connecting_as(Speaker.CONTROL))
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


def test_one_that_dies_before_its_answer_is_known_at_once(tmanager: TManager) -> None:
    """Nobody waits for an answer that cannot come; later questions say the same."""
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


def test_one_that_is_silent_costs_the_time_limit(tmanager: TManager) -> None:
    """It hangs, or something else listens there that says nothing."""
    tmanager.answer = lambda _: None
    with tmanager.client() as client, pytest.raises(UnreachableError, match=r"nothing came within 0\.2 s"):
        client.status(0.2)
    with socket.create_server(("127.0.0.1", 0)) as foreign:
        endpoint = f"tcp://127.0.0.1:{foreign.getsockname()[1]}"
        with (
            TManagerClient(endpoint, tmanager.keys.connecting_as(Speaker.READER)) as client,
            pytest.raises(UnreachableError, match=r"nothing came within 0\.2 s"),
        ):
            client.status(0.2)


def test_the_answer_to_a_question_that_was_given_up_is_not_taken_for_another(tmanager: TManager) -> None:
    """It comes when the next one is asked."""
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


def test_an_answer_that_is_there_is_heard_though_the_time_is_over(
    tmanager: TManager, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A command that was stopped, or that waited for its turn on a busy machine, has not looked meanwhile."""
    with tmanager.client() as client:

        def clock() -> Iterator[float]:
            yield 0.0
            assert client._channel.raw.poll(int(LONG_S * 1000)), "no answer"
            yield 2 * LONG_S

        monkeypatch.setattr("heron.ipc.query.monotonic_s", clock().__next__)
        assert client.status(LONG_S) == STATUS


def test_a_refusal_is_told_with_its_reason(tmanager: TManager) -> None:
    """In the topology manager's own words; one that names no question is of a side that could not read it."""
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
def test_an_answer_of_another_wire_version_is_no_riddle(tmanager: TManager, reply: bytes) -> None:
    """The topology may be run by another version of heron-core."""
    tmanager.answer = lambda _: reply
    with tmanager.client() as client, pytest.raises(RemoteProtocolError, match="another version of heron-core"):
        client.status(LONG_S)
