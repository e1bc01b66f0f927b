"""The control messages about the inside of a task, and about traces, whose bytes are pinned."""

from __future__ import annotations

import struct

from heron.ipc import control_pb2 as pb
from heron.ipc.envelope import Envelope

__all__ = ["TASK_MESSAGES", "TRACED_SEGMENT"]

_LONG_CALL = pb.LongCall(task_id=2, incarnation=3, on=True, function="process", place="words.py, line 7", lasts_s=12.5)

TASK_MESSAGES = (
    Envelope(stack_request=pb.StackRequest(request_id=15, component="count", task_id=2, wait_s=5.0)),
    Envelope(profile_request=pb.ProfileRequest(request_id=16, component="count", task_id=2, wait_s=5.0, seconds=10.0)),
    Envelope(memory_request=pb.MemoryRequest(request_id=17, component="count", task_id=2, wait_s=5.0, seconds=10.0)),
    Envelope(
        tuples_request=pb.TuplesRequest(
            request_id=18, component="count", task_id=2, wait_s=5.0, seconds=10.0, tuples=20
        )
    ),
    Envelope(
        letters_request=pb.LettersRequest(
            request_id=19, component="lines", task_id=1, wait_s=5.0, drop=True, ids=["1-3-1", "1-3-2"]
        )
    ),
    Envelope(
        capture_request=pb.CaptureRequest(
            request_id=20,
            component="lines",
            task_id=1,
            wait_s=5.0,
            seconds=10.0,
            most_bytes=1 << 20,
            shape=True,
            keys=[pb.KeyField(stream="default", field="word")],
            salt=b"salt",
        )
    ),
    Envelope(task_answer=pb.TaskAnswer(request_id=16, document=b"{}", refusal="busy", failure="ended")),
    Envelope(long_call=_LONG_CALL),
    Envelope(traces_request=pb.TracesRequest(request_id=17, limit=50)),
    Envelope(traces_reply=pb.TracesReply(request_id=17, document=b"{}")),
)

_SLOTS = [(0xC10C, 1_000 + place, 1_700_000_000_000_000_000 + place) for place in range(4)] + [(0, 0, 0)] * 2
_TRACE = b"".join(
    (
        struct.pack("<HHI", 10, 0, 6 * 24 + 2 * 32),
        *(struct.pack("<IIqq", clock, 0, monotonic, wall) for clock, monotonic, wall in _SLOTS),
        struct.pack("<QQIIq", 0xAB, 0xCD, 0, 255, 900),
        struct.pack("<QQIIq", 0xEF, 0x12, 2, 7, 950),
    )
)
_KEY = struct.pack("<HHIQ", 4, 0, 8, 77)
_OPTIONS = _TRACE + _KEY
_LENGTH = 32 + 4 + len(_OPTIONS) + 4
_HEAD = struct.pack("<IBBHIIIIHHI", _LENGTH, 1, 1, 0, 3, 5, 65537, 3, 1, 1, len(_OPTIONS))

TRACED_SEGMENT = b"".join((_HEAD, struct.pack("<I", 6), _OPTIONS, b"rows"))
"""Three rows for task 6, of which two are traced, on the way between two stream managers."""
