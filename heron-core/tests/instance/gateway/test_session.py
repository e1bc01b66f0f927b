"""The instance's side of a session: credit and sequence, also when a new session begins."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from heron.errors import RemoteProtocolError
from heron.instance.gateway.session import Session
from heron.instance.queues.data_queue import DataIn, DataOut, RootsSettled, Sleeper
from heron.ipc import control_pb2 as pb
from heron.ipc.envelope import Envelope, control_frame, parse_control
from heron.ipc.frames.frame import (
    FRAME_HEADER_BYTES,
    FrameKind,
    SegmentKind,
    credit_body,
    frame_header,
    parse_credit,
    parse_frame_header,
)
from heron.ipc.frames.frame_limits import FrameLimits
from heron.ipc.frames.tracking import (
    COUNTER_BITS,
    DERIVED,
    LISTED,
    MAX_CAUSE_BYTES,
    MAX_CAUSES_BYTES,
    RootOutcome,
    ack_range,
    tracking_segment,
)
from heron.ipc.frames.tracking_arrays import fails, settled
from heron.ipc.socket import Channel, SocketContext
from heron.ipc.wakeup import Wakeup
from heron.kernel.queue_capacity import QueueCapacity

LIMITS = FrameLimits(1_000_000)


class Wire:
    """Both ends of a session's socket; the test uses the far end."""

    def __init__(self, folder: Path) -> None:
        self.sockets = SocketContext(max_frame_bytes=-1)
        self.near = self.sockets.channel_bound(f"ipc://{folder}/s")
        self.far = self.sockets.channel_to(f"ipc://{folder}/s")
        self.far.send(b"connected")  # a bound channel has nobody to send to before
        assert self.near.wait(10)
        self.near.receive()

    def receive(self) -> bytes:
        assert self.far.wait(10)
        frame = self.far.receive()
        assert frame is not None
        return frame


@pytest.fixture
def wire(tmp_path: Path) -> Iterator[Wire]:
    made = Wire(tmp_path)
    yield made
    made.sockets.close()


def queue_in() -> DataIn:
    return DataIn(Wakeup(), QueueCapacity(1000, 1000, 0.1))


def data(session: int, sequence: int, size: int = 100) -> bytes:
    return frame_header(FrameKind.DATA, session, sequence) + b"x" * size


def credit(session: int, released: int) -> bytes:
    return frame_header(FrameKind.CREDIT, session, 0) + credit_body(0, released)


def take(data_in: DataIn, count: int = 1) -> None:
    for _ in range(count):
        frame = data_in.get()
        assert isinstance(frame, bytes)
        data_in.consume(len(frame) - FRAME_HEADER_BYTES)


def credit_of(wire: Wire) -> tuple[int, int]:
    frame = wire.receive()
    kind, session, _ = parse_frame_header(frame)
    assert kind == FrameKind.CREDIT
    return session, parse_credit(frame)[1]


def silent(channel: Channel) -> bool:
    return not channel.wait(0.03)


def test_frames_queue_up_and_consumption_is_credited_once(wire: Wire) -> None:
    """Credit counts processed bytes, not received bytes."""
    data_in = queue_in()
    session = Session(4, 1000, data_in, LIMITS)
    for sequence in (1, 2, 3):
        assert session.handle(data(4, sequence), data_in) is None
    session.send_credit(wire.near, data_in)
    assert silent(wire.far)
    take(data_in, 2)
    session.send_credit(wire.near, data_in)
    session.send_credit(wire.near, data_in)
    assert credit_of(wire) == (4, 200)
    assert silent(wire.far)


def test_a_new_session_grants_no_credit_for_the_previous_one(wire: Wire) -> None:
    """The queue may still hold old frames, whose bytes belong to the window of the previous session."""
    data_in = queue_in()
    first = Session(4, 1000, data_in, LIMITS)
    for sequence in (1, 2):
        first.handle(data(4, sequence), data_in)
    take(data_in)
    second = Session(5, 1000, data_in, LIMITS)
    second.handle(data(5, 1, 70), data_in)
    take(data_in)
    second.send_credit(wire.near, data_in)
    assert silent(wire.far)
    take(data_in)
    second.send_credit(wire.near, data_in)
    assert credit_of(wire) == (5, 70)


def test_output_waits_for_credit_and_control_does_not_overtake(wire: Wire) -> None:
    """The report of an end follows all data."""
    out = DataOut(Wakeup(), Sleeper(), QueueCapacity(1_000_000, 1_000_000, 0.1), LIMITS)
    data_in = queue_in()
    session = Session(4, 100, data_in, LIMITS)
    for _ in range(3):
        out.put([b"a" * 30, b"b" * 30])
    out.put_control(Envelope(stop=pb.Stop(reason="end")))
    session.pump(wire.near, out)
    assert parse_frame_header(wire.receive()) == (FrameKind.DATA, 4, 1)
    assert silent(wire.far)
    assert out.queued_bytes == 120
    for released, sequence in ((60, 2), (120, 3)):
        session.handle(credit(4, released), data_in)
        session.pump(wire.near, out)
        frame = wire.receive()
        assert parse_frame_header(frame) == (FrameKind.DATA, 4, sequence)
        assert frame[FRAME_HEADER_BYTES:] == b"a" * 30 + b"b" * 30
    assert parse_control(wire.receive()).stop.reason == "end"
    assert out.queued_bytes == 0


def test_unsent_data_is_sent_in_the_next_session(wire: Wire) -> None:
    """The session has a new window and new sequence numbers."""
    out = DataOut(Wakeup(), Sleeper(), QueueCapacity(1_000_000, 1_000_000, 0.1), LIMITS)
    data_in = queue_in()
    first = Session(4, 100, data_in, LIMITS)
    for _ in range(2):
        out.put([b"a" * 80])
    first.pump(wire.near, out)
    second = Session(5, 100, data_in, LIMITS)
    second.pump(wire.near, out)
    assert parse_frame_header(wire.receive()) == (FrameKind.DATA, 4, 1)
    assert parse_frame_header(wire.receive()) == (FrameKind.DATA, 5, 1)
    assert not out.items


def test_control_frames_are_returned() -> None:
    """The gateway reads them. They have no sequence number."""
    data_in = queue_in()
    session = Session(4, 100, data_in, LIMITS)
    frame = control_frame(Envelope(stop=pb.Stop()), 4)
    assert session.handle(frame, data_in) is frame
    session.handle(data(4, 1), data_in)
    assert session.lost_frames == 0


def test_a_gap_is_counted() -> None:
    """The lost frames are counted, and later data is accepted."""
    data_in = queue_in()
    session = Session(4, 100, data_in, LIMITS)
    session.handle(data(4, 3), data_in)
    assert session.lost_frames == 2
    assert data_in.queued_bytes() == 100


@pytest.mark.parametrize(
    "frame",
    [
        b"",
        b"\x02" + data(4, 1)[1:],
        data(5, 1),
        data(4, 0),
        credit(4, 1),
        credit(4, 0)[:-1],
        credit(5, 0),
        frame_header(99, 4, 1),
        control_frame(Envelope(stop=pb.Stop()), 5),
    ],
)
def test_frames_against_the_protocol_are_rejected(frame: bytes) -> None:
    """The gateway ends the session on this error, and nothing is queued."""
    data_in = queue_in()
    session = Session(4, 100, data_in, LIMITS)
    with pytest.raises(RemoteProtocolError):
        session.handle(frame, data_in)
    assert data_in.get() is None


def acks(session: int, *segments: bytes) -> bytes:
    return frame_header(FrameKind.ACK, session, 1) + b"".join(segments)


def test_outcomes_of_roots_need_no_credit() -> None:
    """They come in the order of completion. One frame may have several outcomes."""
    data_in = queue_in()
    session = Session(4, 100, data_in, LIMITS)
    segments = [
        *settled(7, RootOutcome.COMPLETE, np.arange(3, 6)),
        *settled(7, RootOutcome.FAILED, np.array([9, 2])),
    ]
    session.handle(acks(4, *segments), data_in)
    assert data_in.get() == RootsSettled(((RootOutcome.COMPLETE, range(3, 6)), (RootOutcome.FAILED, [9, 2])))
    assert data_in.received_bytes == 0


def test_why_roots_failed_reaches_the_task_with_their_outcome() -> None:
    """The task notes causes before it handles outcomes, so their places in the frame do not matter."""
    data_in = queue_in()
    session = Session(4, 100, data_in, LIMITS)
    roots = np.array([(7 << COUNTER_BITS) | 9, (7 << COUNTER_BITS) | 2], dtype=np.uint64)
    why, _ = fails(roots, [(b"{}", b'"why"')] * 2)
    document = b'{,"text":"why"}'
    session.handle(acks(4, why, *settled(7, RootOutcome.FAILED, np.array([9, 2]))), data_in)
    assert data_in.get() == RootsSettled(((RootOutcome.FAILED, [9, 2]),), (([9, 2], [(document, b"")] * 2),))


GARBLED = {
    "a cause that is too long": tracking_segment(7, SegmentKind.CAUSE, LISTED, 1, bytes(8 + MAX_CAUSES_BYTES + 1)),
    "a document that is too long": tracking_segment(
        7, SegmentKind.CAUSE, LISTED, 2, bytes(16) + b"{}\n" + b"x" * (MAX_CAUSE_BYTES + 1)
    ),
    "fewer causes than counters": tracking_segment(7, SegmentKind.CAUSE, LISTED, 2, bytes(16) + b"{}"),
    "a cause of fewer counters than it says": tracking_segment(7, SegmentKind.CAUSE, LISTED, 2, bytes(15)),
    "an outcome that nobody knows": tracking_segment(7, SegmentKind.SETTLED, DERIVED, 1, b"\0" * 8, stream=9),
    "fewer counters than it says": tracking_segment(7, SegmentKind.SETTLED, LISTED, 2, b"\0" * 8),
    "an ack": ack_range(1, 2, 3, 4),
    "the half of one": settled(7, RootOutcome.COMPLETE, np.arange(3))[0][:20],
    "noise": bytes(range(64)),
}


@pytest.mark.parametrize("segment", GARBLED.values(), ids=GARBLED)
def test_garbled_outcomes_end_the_session_and_not_the_task(segment: bytes) -> None:
    """They are parsed before they reach the task thread, because an error there would end the process."""
    data_in = queue_in()
    session = Session(4, 100, data_in, LIMITS)
    with pytest.raises(RemoteProtocolError):
        session.handle(acks(4, segment), data_in)
    assert data_in.get() is None


@given(st.data())
def test_changed_bytes_of_outcomes_are_parsed_or_rejected(chance: st.DataObject) -> None:
    """No other exception may occur, because it would end the gateway thread and its process."""
    frame = bytearray(
        acks(4, *settled(7, RootOutcome.LOST, np.array([5, 1, 2])), *settled(7, RootOutcome.COMPLETE, np.arange(9)))
    )
    for _ in range(chance.draw(st.integers(1, 4))):
        frame[chance.draw(st.integers(0, len(frame) - 1))] = chance.draw(st.integers(0, 255))
    with suppress(RemoteProtocolError):
        Session(4, 100, queue_in(), LIMITS).handle(bytes(frame), queue_in())
