"""Observers of one task's emits, acks and fails."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from heron.api.tuple import Tuple

if TYPE_CHECKING:  # the context adds hooks
    from heron.api.context import TopologyContext

__all__ = [
    "BoltAckInfo",
    "BoltExecuteInfo",
    "BoltFailInfo",
    "EmitInfo",
    "ITaskHook",
    "SpoutAckInfo",
    "SpoutFailInfo",
]


class EmitInfo(NamedTuple):
    """An emit: its values and stream, the emitting task, and the receiving tasks where they are known
    already.
    """

    values: tuple[Any, ...]
    stream_id: str
    task_id: int
    out_tasks: list[int]


class SpoutAckInfo(NamedTuple):
    """A complete tree; the latency is milliseconds since the emit."""

    message_id: object
    spout_task_id: int
    complete_latency_ms: float


class SpoutFailInfo(NamedTuple):
    """A failed tree; the latency is milliseconds since the emit."""

    message_id: object
    spout_task_id: int
    fail_latency_ms: float


class BoltExecuteInfo(NamedTuple):
    """A call of `process`; the latency is the call's milliseconds."""

    heron_tuple: Tuple
    executing_task_id: int
    execute_latency_ms: float


class BoltAckInfo(NamedTuple):
    """An ack; the latency is milliseconds since the tuple was given to `process`."""

    heron_tuple: Tuple
    acking_task_id: int
    process_latency_ms: float


class BoltFailInfo(NamedTuple):
    """A fail; the latency is milliseconds since the tuple was given to `process`."""

    heron_tuple: Tuple
    failing_task_id: int
    fail_latency_ms: float


class ITaskHook:
    """Override what is of interest. Each tuple then costs a call: hooks are for diagnosis, metrics for
    operation.

    Hooks come from `TopologyContext.add_task_hook`, or by class name from ``topology.auto.task.hooks``.
    """

    def prepare(self, conf: Mapping[str, Any], context: TopologyContext) -> None:
        """Called once, after the component's `initialize`."""

    def clean_up(self) -> None:
        """Called at an orderly stop, after the component's `close`."""

    def emit(self, emit_info: EmitInfo) -> None:
        """The task emitted a tuple."""

    def spout_ack(self, spout_ack_info: SpoutAckInfo) -> None:
        """A tree of this spout is complete."""

    def spout_fail(self, spout_fail_info: SpoutFailInfo) -> None:
        """A tree of this spout failed."""

    def bolt_execute(self, bolt_execute_info: BoltExecuteInfo) -> None:
        """`process` returned."""

    def bolt_ack(self, bolt_ack_info: BoltAckInfo) -> None:
        """The bolt acked a tuple."""

    def bolt_fail(self, bolt_fail_info: BoltFailInfo) -> None:
        """The bolt failed a tuple."""
