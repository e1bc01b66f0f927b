"""Sequence numbers: a gap is counted, and a repeat or another session ends the session."""

from __future__ import annotations

import pytest

from heron.errors import RemoteProtocolError
from heron.ipc.frames.frame import FrameKind, parse_frame_header
from heron.ipc.link import ReceiveLane, SendLane


def test_a_lane_counts_from_one() -> None:
    """Both sides start at 1 in each session, so that the loss of the first frame is noticed."""
    sender, receiver = SendLane(7), ReceiveLane(7)
    for expected in (1, 2, 3):
        kind, session, sequence = parse_frame_header(sender.header(FrameKind.DATA))
        assert (kind, session, sequence) == (FrameKind.DATA, 7, expected)
        assert receiver.accept(session, sequence) == 0


def test_a_gap_is_the_number_of_missing_frames() -> None:
    """ZeroMQ loses whole messages when a peer restarts; each lost frame is counted once."""
    receiver = ReceiveLane(7)
    assert receiver.accept(7, 4) == 3
    assert receiver.accept(7, 5) == 0


@pytest.mark.parametrize(("session", "sequence"), [(8, 2), (6, 2), (7, 1), (7, 0)])
def test_a_repeat_or_another_session_is_refused(session: int, sequence: int) -> None:
    """Neither frame is new data, and the refusal changes nothing."""
    receiver = ReceiveLane(7)
    receiver.accept(7, 1)
    with pytest.raises(RemoteProtocolError):
        receiver.accept(session, sequence)
    assert receiver.accept(7, 2) == 0
