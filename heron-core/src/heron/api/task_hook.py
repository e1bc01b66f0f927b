"""What task hooks are told; `heron.api.context.ITaskHook` is their base class."""

from __future__ import annotations

from typing import Any, NamedTuple

from heron.api.tuple import Tuple

__all__ = [
    "BoltAckInfo",
    "BoltExecuteInfo",
    "BoltFailInfo",
    "EmitInfo",
    "SpoutAckInfo",
    "SpoutFailInfo",
]


class EmitInfo(NamedTuple):
    """An emit: its values and stream, the emitting task, and the receiving tasks as far as they are known."""

    values: tuple[Any, ...]
    stream_id: str
    task_id: int
    out_tasks: list[int]


class SpoutAckInfo(NamedTuple):
    """A complete tree. The latency is the time since the emit, in milliseconds."""

    message_id: object
    spout_task_id: int
    complete_latency_ms: float


class SpoutFailInfo(NamedTuple):
    """A failed tree. The latency is the time since the emit, in milliseconds."""

    message_id: object
    spout_task_id: int
    fail_latency_ms: float


class BoltExecuteInfo(NamedTuple):
    """A call of `process`. The latency is the duration of the call, in milliseconds."""

    heron_tuple: Tuple
    executing_task_id: int
    execute_latency_ms: float


class BoltAckInfo(NamedTuple):
    """An ack. The latency is the time since the call of `process` for the tuple, in milliseconds."""

    heron_tuple: Tuple
    acking_task_id: int
    process_latency_ms: float


class BoltFailInfo(NamedTuple):
    """A fail. The latency is the time since the call of `process` for the tuple, in milliseconds."""

    heron_tuple: Tuple
    failing_task_id: int
    fail_latency_ms: float
