"""The answers about the flow of a topology and about its tasks. `flow_items` has the values in them."""

from __future__ import annotations

from typing import Any

import msgspec

from heron_cli.client import FunctionTime, LineTime, LogLine, TaskMemory, TaskProfile, TaskStacks, TaskTuples
from heron_service_tracker.observed.flow_items import FlowEdge, FlowNode, TaskRow

__all__ = [
    "FlowAnswer",
    "LogFileItem",
    "LogFilesAnswer",
    "LogsAnswer",
    "MemoryAnswer",
    "ProfileAnswer",
    "StackAnswer",
    "TasksAnswer",
    "TuplesAnswer",
]


class FlowAnswer(msgspec.Struct, frozen=True):
    """The graph of a topology with its present rates. `edges` are empty until the plans were read."""

    nodes: tuple[FlowNode, ...]
    edges: tuple[FlowEdge, ...]
    age_s: float
    error: str


class TasksAnswer(msgspec.Struct, frozen=True):
    """A page of the tasks, by number."""

    items: tuple[TaskRow, ...]
    total: int
    next_offset: int | None
    age_s: float
    error: str


class StackAnswer(msgspec.Struct, frozen=True):
    """The threads of a task at this moment, as `heron stack` shows them."""

    stacks: TaskStacks
    age_s: float = 0.0
    error: str = ""


class ProfileAnswer(msgspec.Struct, frozen=True):
    """Where a task spends its time, as `heron profile` shows it; `speedscope` is the file for that viewer.

    `lines` are those of user code with the most time, on a processor or off it. `functions` are those with the most
    time on a processor in their own lines. In the sum of a component, `task_ids` are its tasks that were sampled, and
    `missing` says why others were not.
    """

    profile: TaskProfile
    lines: tuple[LineTime, ...]
    functions: tuple[FunctionTime, ...]
    speedscope: dict[str, Any]
    task_ids: tuple[int, ...] = ()
    missing: tuple[str, ...] = ()
    age_s: float = 0.0
    error: str = ""


class MemoryAnswer(msgspec.Struct, frozen=True):
    """What the memory of a task holds, as `heron memory` shows it."""

    memory: TaskMemory
    age_s: float = 0.0
    error: str = ""


class TuplesAnswer(msgspec.Struct, frozen=True):
    """Tuples of a task, as `heron inspect` shows them."""

    tuples: TaskTuples
    age_s: float = 0.0
    error: str = ""


class LogsAnswer(msgspec.Struct, frozen=True):
    """The last lines of the logs of a task or process: first those of the engine, by time, then printed lines."""

    items: tuple[LogLine, ...]
    age_s: float = 0.0
    error: str = ""


class LogFileItem(msgspec.Struct, frozen=True):
    """A log, and its bytes with those of its older parts."""

    name: str
    size_bytes: int


class LogFilesAnswer(msgspec.Struct, frozen=True):
    """The logs of a topology, a task or a process, by name."""

    items: tuple[LogFileItem, ...]
    age_s: float = 0.0
    error: str = ""
