"""One session of an instance with one incarnation of its stream manager. Pure, except for the channel it is given."""

from __future__ import annotations

from heron.errors import RemoteProtocolError, Violation
from heron.instance.queues.data_queue import DataIn, DataOut, RootsSettled, TracedFrameArrived
from heron.ipc.envelope import Envelope, control_frame
from heron.ipc.frames.frame import (
    FRAME_HEADER_BYTES,
    FrameKind,
    SegmentKind,
    credit_body,
    frame_header,
    parse_credit,
    parse_frame_header,
    parse_segment,
    segment_routes,
)
from heron.ipc.frames.frame_limits import FrameLimits
from heron.ipc.frames.sent_frames import LostFrames, SentFrames
from heron.ipc.frames.trace_field import frame_is_traced, stamp_now, stamp_sent
from heron.ipc.frames.tracking import Cause, parse_cause, parse_settled
from heron.ipc.link import CreditWindow, ReceiveLane, SendLane
from heron.ipc.socket import Channel
from heron.spi.tracing import StampKind

__all__ = ["Session", "settled_roots"]


def settled_roots(frame: bytes) -> RootsSettled:
    """The outcomes in an ACK frame. The gateway parses it, because a garbled frame is an error of the session.

    Raises:
        RemoteProtocolError: when the frame is garbled.
    """
    heads = [parse_segment(frame, start) for start, _, _ in segment_routes(frame)]
    causes: list[tuple[list[int], list[Cause]]] = []
    outcomes = []
    for head in heads:
        if head.kind == SegmentKind.SETTLED:
            outcomes.append(parse_settled(frame, head))
        elif head.kind == SegmentKind.CAUSE:
            causes.append(parse_cause(frame, head))
        else:
            msg = f"segment of kind {head.kind} in an ack frame from the stream manager"
            raise RemoteProtocolError(msg, Violation.KIND)
    return RootsSettled(tuple(outcomes), tuple(causes))


class Session:
    """Credit and sequence in both directions.

    The queue may still hold frames of the previous session. Credit therefore counts from the bytes that had been
    received when this session began.
    """

    def __init__(self, session: int, window_bytes: int, data_in: DataIn, limits: FrameLimits) -> None:
        self.number = session
        self._limits = limits
        self._sent = SentFrames()
        self._window = CreditWindow(window_bytes)
        self._outgoing = SendLane(session)
        self._incoming = ReceiveLane(session)
        self._received_before = data_in.received_bytes
        self._reported = 0
        self.lost_frames = 0

    @property
    def taken(self) -> int:
        """The number of data and ack frames that have arrived and keep the protocol."""
        return self._incoming.taken

    def lost(self, taken: int) -> LostFrames:
        """What is lost when the stream manager refuses this session after `taken` frames."""
        return self._sent.lost(taken, self._limits.data_bytes)

    def handle(self, frame: bytes, data_in: DataIn) -> bytes | None:
        """Handles one frame; returns it if it is a control frame.

        Raises:
            RemoteProtocolError: when the frame breaks the protocol.
        """
        kind, session, sequence = parse_frame_header(frame)
        self._limits.check(kind, len(frame))
        if session != self.number:
            msg = f"frame of session {session} in session {self.number}"
            raise RemoteProtocolError(msg, Violation.SESSION)
        if kind == FrameKind.CONTROL:
            return frame
        if kind == FrameKind.CREDIT:
            self._window.release(parse_credit(frame)[1])
            self._sent.confirm(sequence)
            return None
        self.lost_frames += self._incoming.accept(session, sequence)
        if kind == FrameKind.ACK:
            try:
                data_in.put(settled_roots(frame))  # does not count in the credit of data
            except RemoteProtocolError:
                self._incoming.take_back()
                raise
        else:
            if frame_is_traced(frame):
                data_in.put(TracedFrameArrived(stamp_now(StampKind.RECEIVED)))
            data_in.put(frame, len(frame) - FRAME_HEADER_BYTES)
        return None

    def send_credit(self, channel: Channel, data_in: DataIn) -> None:
        """Releases the consumed bytes of this session's frames, as far as data-in has room for more."""
        released = data_in.released_bytes() - self._received_before
        if released > self._reported:
            self._reported = released
            header = frame_header(FrameKind.CREDIT, self.number, self.taken)
            channel.send(header + credit_body(0, released))

    def send_control(self, channel: Channel, envelope: Envelope) -> None:
        """Sends a control message at once: it overtakes data that waits for credit."""
        channel.send(control_frame(envelope, self.number))

    def pump(self, channel: Channel, data_out: DataOut) -> bool:
        """Sends the data that credit allows, in order; control messages need no credit. Whether any data was sent."""
        sent = False
        while data_out.acks:
            acks = data_out.acks.popleft()
            channel.send(b"".join((self._outgoing.header(FrameKind.ACK), *acks)))
        items, limit = data_out.items, data_out.limit
        while items:
            item = items[0]
            if isinstance(item, Envelope):
                items.popleft()
                channel.send(control_frame(item, self.number))
                continue
            segments, size_bytes = item
            if not self._window.allows(size_bytes):
                data_out.delayed = True
                if limit is not None:
                    limit.idle()
                break
            if limit is not None and not limit.allows():
                data_out.delayed = True
                break
            items.popleft()
            self._window.spend(size_bytes)
            if limit is not None:
                limit.spend(size_bytes)
            flags = stamp_sent(segments)
            channel.send(b"".join((self._outgoing.header(FrameKind.DATA, flags), *segments)))
            self._sent.note(self._outgoing.sequence, FRAME_HEADER_BYTES + size_bytes, segments)
            data_out.sent(size_bytes)
            sent = True
        return sent
