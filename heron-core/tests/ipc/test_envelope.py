"""Control messages in frames."""

from __future__ import annotations

import zlib

import pytest

from heron.errors import RemoteProtocolError
from heron.ipc import control_pb2 as pb
from heron.ipc.envelope import Envelope, body_of, compressed, control_frame, parse_control
from heron.ipc.frames.frame import FRAME_HEADER_BYTES, FrameKind, frame_header, parse_frame_header


def test_an_envelope_is_encoded_as_a_control_frame() -> None:
    """Control frames carry their session, but are not part of the sequence of data frames."""
    envelope = Envelope(epoch=3, stop=pb.Stop(reason="asked to"))
    frame = control_frame(envelope, 12)
    assert parse_frame_header(frame) == (FrameKind.CONTROL, 12, 0)
    assert parse_control(frame) == envelope
    assert body_of(envelope) == "stop"


def test_a_compressed_envelope_arrives_as_it_was() -> None:
    """Each field, and in less space."""
    envelope = Envelope(epoch=3, plan=pb.Plan(version=7, document=b"{}" * 1000))
    frame = control_frame(compressed(envelope), 12)
    assert parse_control(frame) == envelope
    assert len(frame) < 100


def test_a_compressed_envelope_has_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """A few bytes could take all memory."""
    monkeypatch.setattr("heron.ipc.envelope.DECOMPRESSED_MAX_BYTES", 1000)
    frame = control_frame(compressed(Envelope(plan=pb.Plan(document=b"x" * 1000))))
    with pytest.raises(RemoteProtocolError, match=r"control message of \d+ bytes takes more than 1000 bytes"):
        parse_control(frame)


@pytest.mark.parametrize(
    ("frame", "complaint"),
    [
        (b"", "shorter than its header"),
        (frame_header(FrameKind.DATA, 1, 1), "kind 1"),
        (control_frame(Envelope(epoch=1)), "without a known body"),
        (control_frame(Envelope(stop=pb.Stop(reason="long enough")))[:-3], "does not decode"),
        (frame_header(FrameKind.CONTROL, 0, 0) + b"\xff" * 9, "does not decode"),
        (control_frame(Envelope(compressed=b"no zlib")), "does not decode"),
        (control_frame(Envelope(compressed=zlib.compress(b"\xff" * 9))), "does not decode"),
        (control_frame(Envelope(compressed=zlib.compress(b"")[:-2])), "does not end where its data ends"),
        (control_frame(Envelope(compressed=zlib.compress(b"") + b"more")), "does not end where its data ends"),
        (control_frame(Envelope(compressed=zlib.compress(b""))), "without a known body"),
    ],
)
def test_a_frame_that_is_not_a_control_message_is_a_typed_error(frame: bytes, complaint: str) -> None:
    """The reader of a control socket catches one class of errors."""
    with pytest.raises(RemoteProtocolError, match=complaint):
        parse_control(frame)


def test_every_truncated_control_frame_is_read_or_refused() -> None:
    """Protobuf accepts some prefixes, because fields are optional; the others raise the typed error."""
    plan = control_frame(Envelope(epoch=300, plan=pb.Plan(version=7, document=b"{}" * 20)))
    for size in range(FRAME_HEADER_BYTES, len(plan)):
        try:
            parse_control(plan[:size])
        except RemoteProtocolError:
            continue


def test_fields_of_a_later_version_are_skipped() -> None:
    """A newer peer may send fields that this version does not know."""
    stop = pb.Stop(reason="x").SerializeToString() + b"\xfa\x3e\x03new"  # field 1007, length-delimited
    data = b"\x7a" + bytes([len(stop)]) + stop
    envelope = parse_control(frame_header(FrameKind.CONTROL, 0, 0) + data)
    assert envelope.stop.reason == "x"
