"""Byte credit: at most one window is under way, and no link stops for ever."""

from __future__ import annotations

from collections import deque

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heron.errors import RemoteProtocolError
from heron.ipc.link import CreditGrant, CreditWindow


@given(sizes=st.lists(st.integers(1, 300), max_size=60), window=st.integers(1, 200), data=st.data())
def test_a_sender_never_exceeds_the_window_and_never_stops_for_ever(
    sizes: list[int], window: int, data: st.DataObject
) -> None:
    """Random sizes, deliveries and releases, with repeated and late credit messages: every frame is sent in the end."""
    sender, receiver = CreditWindow(window), CreditGrant()
    waiting, wire, held = deque(sizes), deque[int](), deque[int]()
    told = deque[int]()
    while waiting or wire or held or told:
        moves = []
        if waiting and sender.allows(waiting[0]):
            moves.append("send")
        moves += [name for name, queue in (("arrive", wire), ("release", held), ("credit", told)) if queue]
        assert moves, "nothing can move, and not all is sent"
        move = data.draw(st.sampled_from(moves))
        if move == "send":
            size = waiting.popleft()
            alone = sender.sent_bytes == sender.released_bytes
            assert alone or sender.sent_bytes - sender.released_bytes + size <= window
            sender.spend(size)
            wire.append(size)
        elif move == "arrive":
            held.append(wire.popleft())
            receiver.receive(held[-1])
        elif move == "release":
            receiver.release(held.popleft())
            due = receiver.due()
            assert due is not None
            told.extend([due] * data.draw(st.integers(1, 2)))
        else:
            sender.release(told.popleft())
        under_way = sender.sent_bytes - sender.released_bytes
        assert under_way <= max(window, *sizes)
    assert sender.sent_bytes == sender.released_bytes == receiver.received_bytes == sum(sizes)


def test_a_frame_larger_than_the_window_goes_alone() -> None:
    """No frame size may block a link for ever, and no other frame may exceed the window."""
    window = CreditWindow(100)
    assert window.allows(1000)
    window.spend(1000)
    assert not window.allows(1)
    window.release(999)
    assert window.allows(99)
    assert not window.allows(1000)


def test_an_old_credit_message_has_no_effect() -> None:
    """Credit messages carry totals, so a late or repeated one changes nothing."""
    window = CreditWindow(100)
    window.spend(80)
    window.release(50)
    window.release(20)
    assert window.released_bytes == 50


def test_a_release_of_more_than_was_sent_is_a_protocol_error() -> None:
    """A peer that counts wrongly would remove the limit of the link."""
    window = CreditWindow(100)
    window.spend(10)
    with pytest.raises(RemoteProtocolError, match="releases 11 bytes, only 10 bytes were sent"):
        window.release(11)


def test_credit_is_sent_once() -> None:
    """A round without new credit costs no message."""
    grant = CreditGrant()
    assert grant.due() is None
    grant.receive(30)
    grant.release(10)
    grant.release(5)
    assert grant.due() == 15
    assert grant.due() is None
