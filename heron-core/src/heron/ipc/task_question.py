"""The questions about the inside of a task: commands ask them, and the task answers with a `TaskAnswer`."""

from __future__ import annotations

from typing import cast

from heron.ipc import control_pb2 as pb
from heron.ipc.envelope import Envelope, body_of

__all__ = ["MOST_LETTERS", "TASK_COMMANDS", "TASK_QUESTIONS", "TASK_REQUESTS", "TaskRequest", "task_request"]

TASK_QUESTIONS = frozenset({"capture_request", "memory_request", "profile_request", "stack_request", "tuples_request"})

TASK_COMMANDS = frozenset({"letters_request"})
"""They take the same way, and change something."""

TASK_REQUESTS = TASK_QUESTIONS | TASK_COMMANDS

MOST_LETTERS = 1000
"""Dead letters of one request: a task emits them in one go."""

TaskRequest = (
    pb.StackRequest | pb.ProfileRequest | pb.MemoryRequest | pb.TuplesRequest | pb.CaptureRequest | pb.LettersRequest
)


def task_request(envelope: Envelope) -> TaskRequest:
    """The request in an envelope whose body is one of `TASK_REQUESTS`."""
    return cast("TaskRequest", getattr(envelope, body_of(envelope)))
