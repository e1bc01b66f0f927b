"""Task hooks: observers of the emits, acks and fails of one task."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from heron.api.tuple import Tuple

if TYPE_CHECKING:  # the context imports this module
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


class ITaskHook:
    """The base class of task hooks: override the methods of interest.

    `TopologyContext.add_task_hook` adds a hook to one task; ``topology.auto.task.hooks`` adds hooks to every task, by
    class name. A hook costs a call for each tuple, so use hooks for diagnosis and metrics for operation.
    """

    def prepare(self, conf: Mapping[str, Any], context: TopologyContext) -> None:
        """Prepare the hook. Called once, after the `initialize` of the component."""

    def clean_up(self) -> None:
        """Release resources. Called at an orderly stop, after the `close` of the component."""

    def emit(self, emit_info: EmitInfo) -> None:
        """Observe an emit of the task."""

    def spout_ack(self, spout_ack_info: SpoutAckInfo) -> None:
        """Observe that a tree of this spout is complete."""

    def spout_fail(self, spout_fail_info: SpoutFailInfo) -> None:
        """Observe that a tree of this spout failed."""

    def bolt_execute(self, bolt_execute_info: BoltExecuteInfo) -> None:
        """Observe that `process` returned."""

    def bolt_ack(self, bolt_ack_info: BoltAckInfo) -> None:
        """Observe an ack of the bolt."""

    def bolt_fail(self, bolt_fail_info: BoltFailInfo) -> None:
        """Observe a fail of the bolt."""
