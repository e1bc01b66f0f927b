"""Control messages as frames: one protobuf `Envelope` behind a link header."""

from __future__ import annotations

from google.protobuf.message import DecodeError

from heron.errors import RemoteProtocolError
from heron.ipc.control_pb2 import Envelope
from heron.ipc.frame import FRAME_HEADER_BYTES, FrameKind, frame_header, parse_frame_header

__all__ = ["Envelope", "body_of", "control_frame", "parse_control"]


def control_frame(envelope: Envelope, session: int = 0) -> bytes:
    """The frame that carries an envelope. Control frames stand outside the data's sequence: theirs is 0."""
    return frame_header(FrameKind.CONTROL, session, 0) + envelope.SerializeToString()


def parse_control(frame: bytes) -> Envelope:
    """The envelope of a control frame.

    Raises:
        RemoteProtocolError: when the frame is of another kind or version, or garbled, or has no body.
    """
    kind, _, _ = parse_frame_header(frame)
    if kind != FrameKind.CONTROL:
        msg = f"frame of kind {kind} where a control frame was expected"
        raise RemoteProtocolError(msg)
    try:
        envelope = Envelope.FromString(frame[FRAME_HEADER_BYTES:])
    except DecodeError as error:
        msg = f"control frame of {len(frame)} bytes does not decode: {error}"
        raise RemoteProtocolError(msg) from error
    if envelope.WhichOneof("body") is None:
        msg = "control frame without a body that this side knows"
        raise RemoteProtocolError(msg)
    return envelope


def body_of(envelope: Envelope) -> str:
    """The name of the envelope's body, such as ``instance_hello``."""
    return envelope.WhichOneof("body") or ""
