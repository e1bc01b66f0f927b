"""The pinned bytes of what confirms and refuses the frames of a session."""

from __future__ import annotations

from pathlib import Path

import pytest

from heron.ipc.envelope import parse_control
from heron.ipc.frames.frame import FrameKind, parse_credit, parse_frame_header
from parts.pinned_taken_frames import REFUSED, SESSION, TAKEN

GOLDEN = Path(__file__).parent / "golden"


@pytest.mark.parametrize(("name", "taken"), [("frame-credit.bin", 0), ("frame-credit-of-taken.bin", TAKEN)])
def test_credit_decodes(name: str, taken: int) -> None:
    """Task and total, and the sequence up to which the frames were taken. Earlier peers write 0 and do not read it."""
    frame = (GOLDEN / name).read_bytes()
    assert parse_credit(frame) == (6, 2**40 + 5)
    assert parse_frame_header(frame) == (FrameKind.CREDIT, SESSION, taken)


def test_a_refusal_names_the_session_and_the_frames_before() -> None:
    """Earlier peers skip the field and read the reason."""
    assert parse_control((GOLDEN / "frame-refused.bin").read_bytes()) == REFUSED
