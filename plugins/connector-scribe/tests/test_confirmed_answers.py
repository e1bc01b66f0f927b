"""What the server knows of a client that has its answer: that decides whether a later call is the same."""

from __future__ import annotations

import gc
import socket
import threading
import weakref
from collections.abc import Callable

import pytest
from collectors import Collector, asked_counter, call, reply

from heron_connector_scribe.batch import Answer as Result
from heron_connector_scribe.batch import Batch, Fate
from heron_connector_scribe.connection import Connection
from heron_connector_scribe.intake import Intake
from heron_metricsink_scribe.client import Answer, Client
from heron_metricsink_scribe.client import Entry as Logged
from heron_testing.waiting import Eventually

pytestmark = pytest.mark.servers

_STARTS_S = 30.0
_REPLY_BYTES = 24


def test_a_client_that_missed_its_answer_calls_again(make: Callable[..., Collector], eventually: Eventually) -> None:
    """What the server knows of the first call: its client has gone. That decides whether the second is the same."""
    collector = make("EFFECTIVELY_ONCE", queue_s=600.0)
    collector.paused.set()
    with collector.connect() as client:
        client.sendall(call(b"once"))
        eventually(lambda: collector.server.intake.waiting_messages == 1, 30.0)
    with collector.connect() as again:
        again.sendall(call(b"once", seqid=8))
        eventually(lambda: collector.server.intake.waiting_messages == 2, 30.0)
        first, second = collector.server.intake.take(), collector.server.intake.take()
        assert first is not None
        assert second is not None
        assert first.digest == second.digest
        assert (first.will_come_again, second.will_come_again) == (True, False)
        collector.server.intake.answer(first)
        collector.server.intake.answer(second)
        assert reply(again) == (8, Answer.OK)


def test_client_of_thriftpy2_is_confirmed_when_it_goes_on(
    make: Callable[..., Collector], eventually: Eventually
) -> None:
    """Then nothing of its batch is in a checkpoint. The same holds when it closes the connection in order."""
    collector = make("EFFECTIVELY_ONCE")
    client = Client(*collector.address)
    assert client.log([Logged("web", "a")]) is Answer.OK
    assert collector.batches[0].caller.fate is Fate.SENT
    assert client.log([Logged("web", "b")]) is Answer.OK
    assert [each.caller.fate for each in collector.batches] == [Fate.CONFIRMED, Fate.SENT]
    client.close()
    eventually(lambda: collector.batches[1].caller.fate is Fate.CONFIRMED, _STARTS_S)


def test_a_client_that_did_not_read_its_answer_is_gone(make: Callable[..., Collector], eventually: Eventually) -> None:
    """It closes the connection while the answer lies in its buffer."""
    collector = make("EFFECTIVELY_ONCE")
    with collector.connect() as client:
        client.sendall(call(b"x"))
        assert client.recv(1, socket.MSG_PEEK)
    eventually(lambda: collector.batches[0].caller.fate is Fate.GONE, _STARTS_S)


@pytest.mark.parametrize("fate", [Fate.CONFIRMED, Fate.GONE])
def test_a_call_that_was_sent_ahead_confirms_nothing(
    make: Callable[..., Collector], eventually: Eventually, fate: Fate
) -> None:
    """The client sent it without the answer to the one before. A later call, or the end, decides about both."""
    collector = make("EFFECTIVELY_ONCE")
    with collector.connect() as client:
        client.sendall(call(b"a") + call(b"b", seqid=2))
        if fate is Fate.CONFIRMED:
            assert [reply(client)[0] for _ in range(2)] == [1, 2]
            assert [each.caller.fate for each in collector.batches] == [Fate.SENT, Fate.SENT]
            client.sendall(call(b"c", seqid=3))
            assert reply(client)[0] == 3
        else:
            eventually(lambda: len(client.recv(1000, socket.MSG_PEEK)) > _REPLY_BYTES, _STARTS_S)
    eventually(lambda: [each.caller.fate for each in collector.batches][:2] == [fate, fate], _STARTS_S)


def test_a_client_that_has_vanished_is_noticed_within_90_s(make: Callable[..., Collector]) -> None:
    """Also while an answer to it is under way. The page about connectors says so."""
    collector = make()
    with collector.connect() as client:
        client.sendall(call())
        assert reply(client)[1] is Answer.OK
        (served,) = [
            each.sock
            for each in gc.get_objects()
            if isinstance(each, Connection)
            and each.sock.fileno() >= 0
            and each.sock.getpeername() == client.getsockname()
        ]
        idle_s, interval_s, count, timeout_ms = (
            served.getsockopt(socket.IPPROTO_TCP, option)
            for option in (socket.TCP_KEEPIDLE, socket.TCP_KEEPINTVL, socket.TCP_KEEPCNT, socket.TCP_USER_TIMEOUT)
        )
    assert (idle_s + interval_s * count, timeout_ms) == (90, 90_000)


def test_batches_that_are_remembered_hold_no_connection(make: Callable[..., Collector], eventually: Eventually) -> None:
    """Nor what its client sent ahead. Checkpoints remember batches for long after their clients have gone."""
    collector = make("EFFECTIVELY_ONCE", queue_s=600.0)
    with collector.connect() as client:
        client.sendall(call(b"x"))
        assert reply(client) == (1, Answer.OK)
        collector.paused.set()
        client.sendall(call(b"y"))
        eventually(lambda: collector.server.intake.waiting_messages == 1, _STARTS_S)
        served = [each for each in gc.get_objects() if isinstance(each, Connection)]
        found = [weakref.ref(each) for each in served if each.waiting is not None]
        served.clear()
        client.sendall(call(bytes(2000)))
        eventually(lambda: collector.server.intake.partial_bytes > 2000, _STARTS_S)
    second = collector.server.intake.take()
    assert second is not None
    eventually(lambda: second.caller.fate is Fate.GONE, _STARTS_S)
    with collector.connect() as other:  # the selector and the thread let go with their next event
        other.sendall(asked_counter(b"\0"))
        assert other.recv(1)
        gc.collect()
        assert [each() for each in found] == [None]
    assert collector.server.intake.partial_bytes == 0


def test_a_client_whose_end_crosses_the_answer_is_gone(
    make: Callable[..., Collector], eventually: Eventually, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It closes the connection in order, but before the answer arrives."""
    has_answer, has_closed = threading.Event(), threading.Event()
    answers = Intake.answers

    def answers_late(intake: Intake) -> list[tuple[Batch, Result]]:
        if found := answers(intake):
            has_answer.set()
            assert has_closed.wait(_STARTS_S)
        return found

    monkeypatch.setattr(Intake, "answers", answers_late)
    collector = make("EFFECTIVELY_ONCE")
    with collector.connect() as client:
        client.sendall(call(b"x"))
        assert has_answer.wait(_STARTS_S)
    has_closed.set()
    eventually(lambda: collector.batches[0].caller.fate in {Fate.CONFIRMED, Fate.GONE}, _STARTS_S)
    assert collector.batches[0].caller.fate is Fate.GONE
