"""What a task of a random topology remembers: the result of the run, written as JSON when the task closes."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from heron.api import State, StatefulComponent, TopologyContext
from heron_testing.random_topologies.program import Program

__all__ = ["ReceivedRow", "Remembering", "StatefulTask", "TaskMemory", "memories_in", "program_of"]

ReceivedRow = tuple[str, str, int, str, int, str, str]
"""Component, stream and task that a tuple came from; its identity and attempt; key and value as described."""


@dataclass(slots=True)
class TaskMemory:
    """What a task has done.

    Attributes:
        component: the name of the component.
        index: the component index of the task.
        task_id: the id of the task.
        rows: of a bolt: each tuple, once for each time that it was received.
        held: of a bolt: tuples whose emits are due later, ``(identity, attempt, key, value)``.
        calls: of a spout: calls of `next_tuple` that were not replays and not the end.
        attempts: of a spout: how often each root was emitted, by its id.
        acked: of a spout: ids of `ack`.
        failed: of a spout: ids of `fail`.
        surplus: of a spout: calls of `next_tuple` after `end` had returned, without a root to replay.
    """

    component: str
    index: int
    task_id: int
    rows: list[ReceivedRow] = field(default_factory=list)
    held: list[tuple[Any, ...]] = field(default_factory=list)
    calls: int = 0
    attempts: dict[str, int] = field(default_factory=dict)
    acked: list[str] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)
    surplus: int = 0


class Remembering:
    """A component with a memory."""

    memory: TaskMemory | None = None
    out = ""

    def recall(self, config: Mapping[str, Any], context: TopologyContext) -> TaskMemory:
        """The memory of a checkpoint, or a new one."""
        self.out = config["out"]
        self.memory = self.memory or TaskMemory(
            context.get_component_id(), context.get_task_index(), context.get_task_id()
        )
        self.memory.task_id = context.get_task_id()
        return self.memory

    def close(self) -> None:
        """Write the memory into the folder of results, if there is one."""
        if self.out and self.memory is not None:
            path = Path(self.out, f"{self.memory.component}-{self.memory.task_id}.json")
            part = path.with_suffix(f".{os.getpid()}")
            self.memory.held.clear()  # they may have values that JSON lacks
            part.write_bytes(msgspec.json.encode(self.memory))
            part.rename(path)


class StatefulTask(Remembering, StatefulComponent):
    """A component whose memory is its operator state."""

    def init_state(self, state: State) -> None:
        """Take the memory of the checkpoint."""
        self.state = state
        self.memory = state.get("memory")

    def pre_save(self, checkpoint_id: str) -> None:
        """Save the memory."""
        self.state.put("memory", self.memory)


def program_of(config: Mapping[str, Any]) -> Program:
    """The program of a configuration."""
    return Program.from_json(config["program"])


def memories_in(folder: Path) -> list[TaskMemory]:
    """The memories that tasks have written into a folder."""
    return [msgspec.json.decode(path.read_bytes(), type=TaskMemory) for path in sorted(folder.glob("*-*.json"))]
