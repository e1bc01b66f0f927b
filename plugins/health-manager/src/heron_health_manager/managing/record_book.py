"""The records of one run in the state manager. Every write is a compare-and-set, so of two writers one succeeds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from heron.errors import StateConflictError
from heron.spi.statemgr import MUST_NOT_EXIST, NodeKind, StateManager
from heron.state_nodes.health_records import HealthRecords, decode_health_records, encode_health_records

__all__ = ["KeptRecords", "RecordBook"]

_ATTEMPTS = 10  # a health manager writes a few times in a minute


@dataclass(frozen=True, slots=True)
class KeptRecords:
    """The records, and the version of the node that holds them."""

    records: HealthRecords
    version: int


class RecordBook:
    """Reads and writes the node HEALTH of a topology.

    Every method raises `StateError` when the state manager does not answer, or holds something else.
    """

    def __init__(self, statemgr: StateManager, topology: str, topology_id: str) -> None:
        self._statemgr = statemgr
        self._topology = topology
        self._topology_id = topology_id

    def read(self) -> KeptRecords:
        """Return the records of this run; those of another run count as none."""
        node = self._statemgr.get(NodeKind.HEALTH, self._topology)
        empty = HealthRecords(self._topology_id)
        if node is None:
            return KeptRecords(empty, MUST_NOT_EXIST)
        records = decode_health_records(node.value, self._topology)
        return KeptRecords(records if records.topology_id == self._topology_id else empty, node.version)

    def write(self, kept: KeptRecords, records: HealthRecords) -> KeptRecords:
        """Replace the records that were read.

        Raises:
            StateConflictError: when somebody has written meanwhile; nothing was changed.
        """
        value = encode_health_records(records)
        version = self._statemgr.set(NodeKind.HEALTH, self._topology, value, expected=kept.version)
        return KeptRecords(records, version)

    def change(self, change: Callable[[HealthRecords], HealthRecords]) -> HealthRecords:
        """Read, change and write until nobody else writes meanwhile; return the new records.

        Raises:
            StateConflictError: when others write all the time.
        """
        for attempt in range(1, _ATTEMPTS + 1):
            kept = self.read()
            changed = change(kept.records)
            if changed == kept.records:
                return changed
            try:
                return self.write(kept, changed).records
            except StateConflictError:
                if attempt == _ATTEMPTS:
                    raise
        raise AssertionError  # the loop returns or raises
