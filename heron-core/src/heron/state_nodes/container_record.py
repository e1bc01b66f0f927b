"""The node CONTAINER: the life of one container of a managed scheduler, and what commands want of it; decision 073."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import Final

from heron.spi.statemgr import NodeKind
from heron.state_nodes.document import decode_node, encode_node

__all__ = ["ContainerPhase", "ContainerRecord", "decode_container_record", "encode_container_record", "record_name"]

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


def record_name(topology_id: str, container_id: int) -> str:
    """The name of the node of a container."""
    return f"{topology_id[-_RUN_CHARACTERS:]}-{container_id}"


def encode_container_record(record: ContainerRecord) -> bytes:
    """The value of the node."""
    return encode_node(record, _FORMAT)


def decode_container_record(data: bytes, name: str) -> ContainerRecord:
    """The value of the node with that name.

    Raises:
        NewerFormatError: when a newer version of heron-core wrote the node.
        StateError: when the node holds something else.
    """
    return decode_node(data, ContainerRecord, _FORMAT, (NodeKind.CONTAINER, name), "record of a container")
