"""Task hooks: observers of the emits, acks and fails of one task."""

from __future__ import annotations

from heron.api.context import ITaskHook
from heron.api.task_hook import (
    BoltAckInfo,
    BoltExecuteInfo,
    BoltFailInfo,
    EmitInfo,
    SpoutAckInfo,
    SpoutFailInfo,
)

__all__ = ["BoltAckInfo", "BoltExecuteInfo", "BoltFailInfo", "EmitInfo", "ITaskHook", "SpoutAckInfo", "SpoutFailInfo"]
