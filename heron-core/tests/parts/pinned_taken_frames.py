"""The pinned bytes of what confirms and refuses the frames of a session; `heron-core/tests/wire` checks them."""

from __future__ import annotations

from heron.ipc import control_pb2 as pb
from heron.ipc.envelope import Envelope, control_frame
from heron.ipc.frames.frame import FrameKind, credit_body, frame_header

__all__ = ["REFUSED", "SESSION", "TAKEN", "TAKEN_FRAMES"]

SESSION, TAKEN = 0x01020304, 2**40 + 1

REFUSED = Envelope(refused=pb.Refused(reason="too large", frames=pb.RefusedFrames(session=SESSION, taken=TAKEN)))

TAKEN_FRAMES = {
    "frame-credit": frame_header(FrameKind.CREDIT, SESSION, 0) + credit_body(6, 2**40 + 5),
    "frame-credit-of-taken": frame_header(FrameKind.CREDIT, SESSION, TAKEN) + credit_body(6, 2**40 + 5),
    "frame-refused": control_frame(REFUSED, SESSION),
}
