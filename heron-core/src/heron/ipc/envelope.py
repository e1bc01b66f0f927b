"""Control messages as frames: one protobuf `Envelope` behind a link header."""

from __future__ import annotations

import zlib

from google.protobuf.message import DecodeError

from heron.errors import RemoteProtocolError, Violation
from heron.ipc.control_pb2 import Envelope
from heron.ipc.frames.frame import FRAME_HEADER_BYTES, FrameKind, frame_header, parse_frame_header
from heron.ipc.frames.frame_limits import CONTROL_MAX_BYTES
from heron.ipc.reduced_messages import DECOMPRESSED_MAX_BYTES, compressed, fitting

__all__ = ["Envelope", "body_of", "compressed", "control_frame", "parse_control"]

_ROOM_BYTES = CONTROL_MAX_BYTES - FRAME_HEADER_BYTES


def control_frame(envelope: Envelope, session: int = 0) -> bytes:
    """The frame of an envelope. Control frames are not part of the sequence of data frames; their number is 0.

    A message above the limit is compressed or reduced, see `heron.ipc.reduced_messages`.

    Raises:
        LimitExceededError: when it still exceeds the limit.
    """
    return frame_header(FrameKind.CONTROL, session, 0) + fitting(envelope, _ROOM_BYTES)


def parse_control(frame: bytes) -> Envelope:
    """The envelope of a control frame.

    Raises:
        RemoteProtocolError: when the frame has another kind or version, does not decode, has no known body, takes more
            than 64 MiB, or takes more than 256 MiB after decompression.
    """
    kind, _, _ = parse_frame_header(frame)
    if kind != FrameKind.CONTROL:
        msg = f"frame of kind {kind} instead of a control frame"
        raise RemoteProtocolError(msg, Violation.KIND)
    if len(frame) > CONTROL_MAX_BYTES:
        msg = f"control frame of {len(frame)} bytes exceeds the limit of {CONTROL_MAX_BYTES} bytes"
        raise RemoteProtocolError(msg, Violation.SIZE)
    try:
        envelope = Envelope.FromString(frame[FRAME_HEADER_BYTES:])
        if envelope.compressed:
            envelope = Envelope.FromString(_decompressed(envelope.compressed))
    except (DecodeError, zlib.error) as error:
        msg = f"control frame of {len(frame)} bytes does not decode: {error}"
        raise RemoteProtocolError(msg) from error
    if envelope.WhichOneof("body") is None:
        msg = "control frame without a known body"
        raise RemoteProtocolError(msg, Violation.KIND)
    return envelope


def body_of(envelope: Envelope) -> str:
    """The name of the envelope's body, such as ``instance_hello``."""
    return envelope.WhichOneof("body") or ""


def _decompressed(data: bytes) -> bytes:
    decompressor = zlib.decompressobj()
    found = decompressor.decompress(data, DECOMPRESSED_MAX_BYTES)
    if decompressor.unconsumed_tail:
        msg = f"a compressed control message of {len(data)} bytes takes more than {DECOMPRESSED_MAX_BYTES} bytes"
        raise RemoteProtocolError(msg, Violation.SIZE)
    if not decompressor.eof or decompressor.unused_data:
        msg = f"a compressed control message of {len(data)} bytes does not end where its data ends"
        raise RemoteProtocolError(msg)
    return found
