"""What a sink keeps while its server is away: order, bound, pauses, and what it says of losses."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from heron.errors import SinkError
from heron.spi.sink_buffer import FIRST_PAUSE_S, LONGEST_PAUSE_S, SinkBuffer
from heron_testing.fake_clock import FakeClock


class Server:
    """Takes entries, or does not."""

    def __init__(self) -> None:
        self.taken: list[str] = []
        self.parts: list[int] = []
        self.away = False
        self.asked = 0

    def send(self, part: Sequence[str]) -> None:
        self.asked += 1
        if self.away:
            msg = "away"
            raise SinkError(msg)
        self.taken += part
        self.parts.append(len(part))


@pytest.fixture
def server() -> Server:
    return Server()


@pytest.fixture
def buffer(fake_clock: FakeClock) -> SinkBuffer[str]:
    return SinkBuffer("the server", 30, fake_clock)


def test_parts_leave_in_order(buffer: SinkBuffer[str], server: Server) -> None:
    """Counters only grow; and a server bounds what it takes at once."""
    for entry in "abcde":
        buffer.add(entry, 1)
    buffer.deliver(server.send, 2)
    assert (server.taken, server.parts, len(buffer)) == (list("abcde"), [2, 2, 1], 0)


def test_what_was_not_taken_is_kept(buffer: SinkBuffer[str], server: Server, fake_clock: FakeClock) -> None:
    """An outage shorter than the buffer loses nothing."""
    buffer.add("a", 10)
    server.away = True
    with pytest.raises(SinkError, match="away") as caught:
        buffer.deliver(server.send, 10)
    assert caught.value.lost == 0
    buffer.add("b", 10)
    server.away = False
    fake_clock.advance(FIRST_PAUSE_S)
    buffer.deliver(server.send, 10)
    assert server.taken == ["a", "b"]


def test_the_oldest_go_when_there_is_no_room_and_are_counted(buffer: SinkBuffer[str], server: Server) -> None:
    """The newest totals say most; memory is bounded however long the outage."""
    for entry in "abc":
        buffer.add(entry, 10)
    with pytest.raises(SinkError, match=r"the server .* \(max_buffer_bytes, 30 bytes\)") as caught:
        buffer.add("d", 20)
    assert (caught.value.lost, caught.value.reason) == (2, "unsent")
    buffer.deliver(server.send, 10)
    assert server.taken == ["c", "d"]


def test_an_entry_above_the_limit_costs_no_other(buffer: SinkBuffer[str]) -> None:
    """It could never be kept, and must not empty the buffer."""
    buffer.add("a", 10)
    with pytest.raises(SinkError, match="31 bytes is larger than max_buffer_bytes, 30 bytes") as caught:
        buffer.add("b", 31)
    assert (caught.value.lost, caught.value.reason, len(buffer)) == (1, "too-large", 1)


def test_pauses_double_up_to_a_limit_and_end_with_success(
    buffer: SinkBuffer[str], server: Server, fake_clock: FakeClock
) -> None:
    """A server that comes up under load is not helped by hundreds of connections a second."""
    buffer.add("a", 1)
    server.away = True
    pauses = []
    for _ in range(8):
        before_s = fake_clock.monotonic_s()
        asked = server.asked
        while server.asked == asked:
            with pytest.raises(SinkError):
                buffer.deliver(server.send, 1)
            fake_clock.advance(FIRST_PAUSE_S)
        pauses.append(fake_clock.monotonic_s() - before_s - FIRST_PAUSE_S)
    assert pauses[0] == 0
    assert pauses[1:4] == [0, 0.25, 0.75]
    assert pauses[-1] == LONGEST_PAUSE_S - FIRST_PAUSE_S
    server.away = False
    fake_clock.advance(LONGEST_PAUSE_S)
    buffer.deliver(server.send, 1)
    buffer.add("b", 1)
    buffer.deliver(server.send, 1)
    assert server.taken == ["a", "b"]


def test_the_end_tries_at_once_and_says_what_is_lost(buffer: SinkBuffer[str], server: Server) -> None:
    """The last figures of a run are tried also in a pause; what does not leave then never will."""
    buffer.add("a", 1)
    server.away = True
    with pytest.raises(SinkError):
        buffer.deliver(server.send, 1)
    with pytest.raises(SinkError, match="away; 1 entries are lost") as caught:
        buffer.deliver_at_last(server.send, 1)
    assert (server.asked, caught.value.lost, caught.value.reason, len(buffer)) == (2, 1, "closed", 0)
