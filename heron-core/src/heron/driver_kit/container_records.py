"""The records of the containers of a managed scheduler, in the state manager of their topology.

Every change is a compare-and-set, so launchers and commands may change a record at the same time.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

from heron.errors import StateConflictError
from heron.spi.statemgr import NodeKind, StateManager, Versioned, Watch
from heron.state_nodes.container_record import (
    ContainerPhase,
    ContainerRecord,
    decode_container_record,
    encode_container_record,
    record_name,
)

__all__ = ["ContainerPhase", "ContainerRecord", "ContainerRecords"]


class ContainerRecords:
    """The records of one run. Every method may block as a state manager does, and raises StateError as it does."""

    def __init__(self, statemgr: StateManager, topology_id: str) -> None:
        """The state manager stays open as long as the records are used."""
        self._statemgr = statemgr
        self._topology_id = topology_id

    def get(self, container_id: int) -> ContainerRecord | None:
        """Return the record of a container; None when there is none, because the job was killed."""
        node = self._statemgr.get(NodeKind.CONTAINER, self._name(container_id))
        return self._decoded(container_id, node)

    def add(self, topology: str, container_ids: Iterable[int]) -> None:
        """Write records of containers to be started. A container that was removed before goes on with its attempts."""
        for each in container_ids:
            former = self.get(each)
            fresh = ContainerRecord(topology, self._topology_id, each, former.attempts if former else 0)
            self._statemgr.set(NodeKind.CONTAINER, self._name(each), encode_container_record(fresh))

    def change(
        self, container_id: int, changed: Callable[[ContainerRecord], ContainerRecord]
    ) -> ContainerRecord | None:
        """Replace a record by `changed` of it, which may be called again after a conflict; return the new record.

        Return None, and change nothing, when there is no record.
        """
        name = self._name(container_id)
        while (node := self._statemgr.get(NodeKind.CONTAINER, name)) is not None:
            before = decode_container_record(node.value, name)
            after = changed(before)
            if after == before:
                return before
            try:
                self._statemgr.set(NodeKind.CONTAINER, name, encode_container_record(after), expected=node.version)
            except StateConflictError:
                continue
            return after
        return None

    def watch(self, container_id: int, on_change: Callable[[ContainerRecord | None], None]) -> Watch:
        """Call `on_change` with the record now and after each change, as `StateManager.watch` does."""
        return self._statemgr.watch(
            NodeKind.CONTAINER,
            self._name(container_id),
            lambda node: on_change(self._decoded(container_id, node)),
        )

    def remove(self) -> None:
        """Remove all records of the run. Launchers that still live end their executors."""
        mine = re.compile(re.escape(record_name(self._topology_id, 0)[:-1]) + r"\d+")
        for name in self._statemgr.list(NodeKind.CONTAINER):
            if mine.fullmatch(name):
                self._statemgr.delete(NodeKind.CONTAINER, name)

    def _name(self, container_id: int) -> str:
        return record_name(self._topology_id, container_id)

    def _decoded(self, container_id: int, node: Versioned | None) -> ContainerRecord | None:
        return decode_container_record(node.value, self._name(container_id)) if node else None
