"""The node CONTAINER: the life of each container of a managed scheduler, and what commands want of it; decision 073.

Every change is a compare-and-set, so launchers and commands may change a record at the same time.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final

from heron.driver_kit.node_documents import decode_node, encode_node
from heron.errors import StateConflictError
from heron.spi.statemgr import NodeKind, StateManager, Versioned, Watch

__all__ = ["ContainerPhase", "ContainerRecord", "ContainerRecords"]

_FORMAT: Final = 1
_RUN_CHARACTERS: Final = 190  # the end of a run's id is random; the state manager takes names of 200 characters


class ContainerPhase(enum.Enum):
    """What a container does, as its launcher last wrote it."""

    WAITING = "waiting"
    """It has not started, or it waits for its next start."""
    RUNNING = "running"
    ENDED = "ended"
    """Its executor has ended it for good."""
    GIVEN_UP = "given up"
    """It failed too often; only a command starts it again."""
    REMOVED = "removed"
    """A command has removed it from the job, and its executor has ended."""


@dataclass(frozen=True, slots=True)
class ContainerRecord:
    """One container of one run.

    Launchers write `attempts` (the starts of its executor), `phase`, `faults` (failures in a row by its own fault),
    `wait_s` (the last wait before a start), `error` (why it last ended) and `host`. Commands write the rest: an attempt
    up to `restarted` ends and is started again, and a container that is not `wanted` ends for good.
    """

    topology: str
    topology_id: str
    container_id: int
    attempts: int = 0
    phase: ContainerPhase = ContainerPhase.WAITING
    faults: int = 0
    wait_s: float = 0.0
    error: str = ""
    host: str = ""
    restarted: int = 0
    wanted: bool = True


class ContainerRecords:
    """The records of one run. Every method may block as a state manager does, and raises StateError as it does."""

    def __init__(self, statemgr: StateManager, topology_id: str) -> None:
        """The state manager stays open as long as the records are used."""
        self._statemgr = statemgr
        self._topology_id = topology_id

    def get(self, container_id: int) -> ContainerRecord | None:
        """Return the record of a container; None when there is none, because the job was killed."""
        node = self._statemgr.get(NodeKind.CONTAINER, self._name(container_id))
        return self._decoded(container_id, node) if node else None

    def add(self, topology: str, container_ids: Iterable[int]) -> None:
        """Write records of containers to be started. A container that was removed before goes on with its attempts."""
        for each in container_ids:
            former = self.get(each)
            fresh = ContainerRecord(topology, self._topology_id, each, former.attempts if former else 0)
            self._statemgr.set(NodeKind.CONTAINER, self._name(each), encode_node(fresh, _FORMAT))

    def change(
        self, container_id: int, changed: Callable[[ContainerRecord], ContainerRecord]
    ) -> ContainerRecord | None:
        """Replace a record by `changed` of it, which may be called again after a conflict; return the new record.

        Return None, and change nothing, when there is no record.
        """
        name = self._name(container_id)
        while (node := self._statemgr.get(NodeKind.CONTAINER, name)) is not None:
            before = self._decoded(container_id, node)
            after = changed(before)
            if after == before:
                return before
            try:
                self._statemgr.set(NodeKind.CONTAINER, name, encode_node(after, _FORMAT), expected=node.version)
            except StateConflictError:
                continue
            return after
        return None

    def watch(self, container_id: int, on_change: Callable[[ContainerRecord | None], None]) -> Watch:
        """Call `on_change` with the record now and after each change, as `StateManager.watch` does."""
        return self._statemgr.watch(
            NodeKind.CONTAINER,
            self._name(container_id),
            lambda node: on_change(self._decoded(container_id, node) if node else None),
        )

    def remove(self) -> None:
        """Remove all records of the run. Launchers that still live end their executors."""
        mine = re.compile(re.escape(self._name(0)[:-1]) + r"\d+")
        for name in self._statemgr.list(NodeKind.CONTAINER):
            if mine.fullmatch(name):
                self._statemgr.delete(NodeKind.CONTAINER, name)

    def _name(self, container_id: int) -> str:
        return f"{self._topology_id[-_RUN_CHARACTERS:]}-{container_id}"

    def _decoded(self, container_id: int, node: Versioned) -> ContainerRecord:
        where = NodeKind.CONTAINER, self._name(container_id)
        topology = self._topology_id.rpartition("-")[0]
        return decode_node(node.value, ContainerRecord, _FORMAT, where, "record of a container", topology)
