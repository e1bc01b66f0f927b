"""The control messages about the inside of a task whose bytes are pinned."""

from __future__ import annotations

from heron.ipc import control_pb2 as pb
from heron.ipc.envelope import Envelope

__all__ = ["TASK_MESSAGES"]

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
    Envelope(task_answer=pb.TaskAnswer(request_id=16, document=b"{}", refusal="busy", failure="ended")),
    Envelope(long_call=_LONG_CALL),
)
