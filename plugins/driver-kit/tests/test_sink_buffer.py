"""The buffer of a sink during an outage of its server: order, limit, pauses, and reports of losses."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from heron.errors import SinkError
from heron_driver_kit.sink_buffer import FIRST_PAUSE_S, LONGEST_PAUSE_S, SinkBuffer
from heron_testing.fake_clock import FakeClock


class Server:
    """Accepts entries, or fails while it is `away`."""

    def __init__(self) -> None:
        self.taken: list[str] = []
        self.parts: list[int] = []
        self.away = False
        self.calls = 0

    def send(self, part: Sequence[str]) -> None:
        self.calls += 1
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
    """The server gets the entries in order, in parts of limited size."""
    for entry in "abcde":
        buffer.add(entry, 1)
    buffer.deliver(server.send, 2)
    assert (server.taken, server.parts, len(buffer)) == (list("abcde"), [2, 2, 1], 0)


def test_undelivered_entries_are_kept(buffer: SinkBuffer[str], server: Server, fake_clock: FakeClock) -> None:
    """No entry is lost in an outage while the buffer has room."""
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


def test_a_full_buffer_drops_and_counts_its_oldest_entries(buffer: SinkBuffer[str], server: Server) -> None:
    """Memory stays bounded during a long outage, and the newest totals are kept."""
    for entry in "abc":
        buffer.add(entry, 10)
    with pytest.raises(SinkError, match=r"the server .* \(max_buffer_bytes, 30 bytes\)") as caught:
        buffer.add("d", 20)
    assert (caught.value.lost, caught.value.reason) == (2, "unsent")
    buffer.deliver(server.send, 10)
    assert server.taken == ["c", "d"]


def test_an_entry_above_the_limit_drops_no_other_entry(buffer: SinkBuffer[str]) -> None:
    """The buffer has no room for it, even when empty."""
    buffer.add("a", 10)
    with pytest.raises(SinkError, match="31 bytes is larger than max_buffer_bytes, 30 bytes") as caught:
        buffer.add("b", 31)
    assert (caught.value.lost, caught.value.reason, len(buffer)) == (1, "too-large", 1)


def test_pauses_double_up_to_a_limit_until_a_delivery_succeeds(
    buffer: SinkBuffer[str], server: Server, fake_clock: FakeClock
) -> None:
    """Pauses protect a server that restarts under load from many connections."""
    buffer.add("a", 1)
    server.away = True
    pauses = []
    for _ in range(8):
        before_s = fake_clock.monotonic_s()
        calls = server.calls
        while server.calls == calls:
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


def test_the_last_delivery_ignores_the_pause_and_reports_losses(buffer: SinkBuffer[str], server: Server) -> None:
    """Entries that are not delivered at the end of a run are lost."""
    buffer.add("a", 1)
    server.away = True
    with pytest.raises(SinkError):
        buffer.deliver(server.send, 1)
    with pytest.raises(SinkError, match="away; 1 entries are lost") as caught:
        buffer.deliver_at_last(server.send, 1)
    assert (server.calls, caught.value.lost, caught.value.reason, len(buffer)) == (2, 1, "closed", 0)
