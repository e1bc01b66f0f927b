"""What travels between tasks: Arrow rows ``(level, slot, body)``, each with many elements in one pickle.

Spark sees few large rows, so its cost for a row, a shuffle and a crossing between JVM and Python is paid once for some
thousand elements. `DONE` is the level of what only the driver reads.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import cloudpickle
import pyarrow as pa

__all__ = [
    "DONE",
    "SCHEMA",
    "SPARK_SCHEMA",
    "Counts",
    "Failure",
    "Logged",
    "Mark",
    "PartitionState",
    "Progress",
    "Rows",
    "SlotSaved",
    "SlotVersion",
    "batches",
    "packed",
    "record_batch",
    "unpacked",
]

DONE = -1
SPARK_SCHEMA = "level int, slot int, body binary"
SCHEMA = pa.schema([("level", pa.int32()), ("slot", pa.int32()), ("body", pa.binary())])


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows for the stage with the head `target`, for its input number `position`."""

    target: int
    position: int
    rows: list[tuple[Any, ...]]


@dataclass(frozen=True, slots=True)
class Mark:
    """The watermark of one upstream task for the stage `target`; None is no event time yet."""

    target: int
    time_us: int | None
    idle: bool = False
    ended: bool = False


@dataclass(frozen=True, slots=True)
class PartitionState:
    """How far a source partition was read.

    Attributes:
        position: of the reader; None for the begin.
        latest_us: the largest event time so far, by the number of the node that assigns it.
        read_s: when it last had an element (wall clock); 0 for never.
    """

    position: object = None
    latest_us: dict[int, int] = field(default_factory=dict)
    ended: bool = False
    read_s: float = 0.0


@dataclass(frozen=True, slots=True)
class SlotVersion:
    """The states of an operator's keys in one slot: the files to read in this order, and the watermark.

    `keys` is the number of keys, `changes` that of the entries in files behind the first.
    """

    files: tuple[str, ...] = ()
    watermark_us: int | None = None
    keys: int = 0
    changes: int = 0


@dataclass(frozen=True, slots=True)
class Progress:
    """A source partition was read: its number in the plan, its state packed, and how many elements it gave now."""

    partition: int
    state: bytes
    rows: int
    ended: bool


@dataclass(frozen=True, slots=True)
class Failure:
    """An author's function failed.

    Attributes:
        message: the error in words, with the operator.
        trace: the traceback of the worker.
        operator: name and place of the operator.
        place: the author's file and line.
        stops: `heron.api.FailedRecordError.stops`.
    """

    message: str
    trace: str
    operator: str = ""
    place: str = ""
    stops: bool | None = None


@dataclass(frozen=True, slots=True)
class Counts:
    """What one task counted: windows that elements missed, failed elements, and the first failures.

    Attributes:
        letters: its packed dead letters, the newest if there is no room for all.
        dropped: the letters for which there was no room.
    """

    late: int = 0
    failed: int = 0
    failures: tuple[Failure, ...] = ()
    letters: tuple[bytes, ...] = ()
    dropped: int = 0


@dataclass(frozen=True, slots=True)
class Logged:
    """Elements for `log`, as text."""

    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SlotSaved:
    """The states of an operator in a slot were saved."""

    operator: str
    slot: int
    version: SlotVersion


def packed(value: object) -> bytes:
    """The pickle of a value; also of functions and classes that an author defined inside others."""
    try:
        return pickle.dumps(value, pickle.HIGHEST_PROTOCOL)
    except (pickle.PicklingError, AttributeError, TypeError):
        pickled: bytes = cloudpickle.dumps(value)
        return pickled


def unpacked(body: bytes) -> Any:  # noqa: ANN401  # what was packed
    """The value of a pickle that a task of this job made."""
    return pickle.loads(body)  # noqa: S301  # of our own tasks


def record_batch(parcels: Sequence[tuple[int, int, bytes]]) -> pa.RecordBatch:
    """Rows of level, slot and body for Spark."""
    levels, slots, bodies = zip(*parcels, strict=True) if parcels else ((), (), ())
    columns = [pa.array(levels, pa.int32()), pa.array(slots, pa.int32()), pa.array(bodies, pa.binary())]
    return pa.record_batch(columns, schema=SCHEMA)


def batches(parcels: Iterator[tuple[int, int, bytes]]) -> Iterator[pa.RecordBatch]:
    """Record batches of about a megabyte."""
    waiting: list[tuple[int, int, bytes]] = []
    size = 0
    for parcel in parcels:
        waiting.append(parcel)
        size += len(parcel[2])
        if size >= _BATCH_BYTES:
            yield record_batch(waiting)
            waiting, size = [], 0
    if waiting:
        yield record_batch(waiting)


_BATCH_BYTES = 1 << 20
