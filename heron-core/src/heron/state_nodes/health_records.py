"""The node HEALTH: the decisions of the health manager, and what people have told it.

Every change is a compare-and-set of the whole node. So of two writers that decide at the same time only one succeeds,
and the other one reads what was decided.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from heron.spi.health_values import Decision, DecisionState
from heron.spi.statemgr import NodeKind
from heron.state_nodes.document import decode_node, encode_node

__all__ = ["KEPT", "HealthRecords", "decode_health_records", "encode_health_records"]

_FORMAT: Final = 1

KEPT: Final = 200
"""The number of decisions that are kept: about a day of them at one every seven minutes."""

_ADVICE: Final = KEPT // 2  # kept at least: more of it must not displace what was tried, which is not tried again


@dataclass(frozen=True, slots=True)
class HealthRecords:
    """What is known of one run of a topology.

    `mode` is that of its health manager. While `paused`, the health manager begins nothing. `problem` is what keeps it
    from its work now, "" if nothing does. `decisions` are ordered by number.
    """

    topology_id: str
    mode: str = ""
    paused: bool = False
    problem: str = ""
    decisions: tuple[Decision, ...] = ()

    def with_decisions(self, *changed: Decision) -> HealthRecords:
        """The records with decisions that are new or replace those with their number; the oldest ones are dropped.

        Advice is dropped first, down to half of all. A decision whose effect is awaited is never dropped.
        """
        by_number = {each.number: each for each in (*self.decisions, *changed)}
        ordered = [by_number[number] for number in sorted(by_number)]
        advised = [each.number for each in ordered if each.state is DecisionState.ADVISED]
        first = frozenset(advised[:-_ADVICE])
        by_worth = sorted(by_number, key=lambda number: (number not in first, number))
        dropped = frozenset(by_worth[:-KEPT])
        kept = tuple(each for each in ordered if each.number not in dropped or each.state is DecisionState.STARTED)
        return replace(self, decisions=kept)


def encode_health_records(records: HealthRecords) -> bytes:
    """The value of the node."""
    return encode_node(records, _FORMAT)


def decode_health_records(data: bytes, topology: str) -> HealthRecords:
    """The inverse of `encode_health_records`.

    Raises:
        NewerFormatError: when a newer version of heron-core wrote the node.
        StateError: when the node holds something else.
    """
    return decode_node(data, HealthRecords, _FORMAT, (NodeKind.HEALTH, topology), "decisions of the health manager")
