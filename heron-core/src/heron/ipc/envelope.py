"""Control messages as frames: one protobuf `Envelope` behind a link header."""

from __future__ import annotations

from google.protobuf.message import DecodeError

from heron.errors import RemoteProtocolError
from heron.ipc.control_pb2 import Envelope
from heron.ipc.frame import FRAME_HEADER_BYTES, FrameKind, frame_header, parse_frame_header

__all__ = ["Envelope", "body_of", "control_frame", "parse_control"]


def control_frame(envelope: Envelope, session: int = 0) -> bytes:
    """The frame of an envelope. Control frames are not part of the sequence of data frames; their number is 0."""
    return frame_header(FrameKind.CONTROL, session, 0) + envelope.SerializeToString()


def parse_control(frame: bytes) -> Envelope:
    """The envelope of a control frame.

    Raises:
        RemoteProtocolError: when the frame has another kind or version, does not decode, or has no known body.
    """
    kind, _, _ = parse_frame_header(frame)
    if kind != FrameKind.CONTROL:
        msg = f"frame of kind {kind} instead of a control frame"
        raise RemoteProtocolError(msg)
    try:
        envelope = Envelope.FromString(frame[FRAME_HEADER_BYTES:])
    except DecodeError as error:
        msg = f"control frame of {len(frame)} bytes does not decode: {error}"
        raise RemoteProtocolError(msg) from error
    if envelope.WhichOneof("body") is None:
        msg = "control frame without a known body"
        raise RemoteProtocolError(msg)
    return envelope


def body_of(envelope: Envelope) -> str:
    """The name of the envelope's body, such as ``instance_hello``."""
    return envelope.WhichOneof("body") or ""
