"""Batches of tuples as segments and frames: built from rows, decoded into rows.

Only this file knows how the payload of a batch is encoded.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from heron.instance.codec.batch_codec import decode_columns
from heron.instance.codec.plain import PLAIN
from heron.instance.codec.serializers import PICKLE
from heron.ipc.frames.frame import (
    Encoding,
    FrameKind,
    Marker,
    SegmentKind,
    frame_header,
    marker_segment,
    parse_segment,
    segment,
)
from heron.spi.serializer import Serializer

__all__ = ["data_frame", "decoded_columns", "decoded_rows", "end_marker", "tuple_segment"]


def tuple_segment(
    rows: Sequence[tuple[object, ...]], destinations: Sequence[int], /, *, source_task: int = 1, **changes: object
) -> bytes:
    """A segment of tuples, on the first stream of `source_task` under plan version 1.

    `changes` replaces arguments of `heron.ipc.frames.frame.segment`, such as ``stream`` or ``options``. A wrong value
    there makes a segment that does not fit its payload. A ``serializer`` encodes the payload instead of pickle.
    """
    serializer = cast("Serializer", changes.pop("serializer", PICKLE))
    fields: dict[str, object] = {
        "kind": SegmentKind.TUPLES,
        "encoding": serializer.encoding,
        "stream": 0,
        "plan_version": 1,
        "source_task": source_task,
        "incarnation": 0,
        "rows": len(rows),
    }
    payload = serializer.encode([list(column) for column in zip(*rows, strict=True)])
    return segment(destinations, payload, **(fields | changes))  # type: ignore[arg-type]  # the fields of a segment


def end_marker(destinations: Sequence[int], source_task: int = 1) -> bytes:
    """The END marker of a task."""
    return marker_segment(destinations, Marker.END, 0, plan_version=1, source_task=source_task, incarnation=0)


def data_frame(*segments: bytes | bytearray, session: int = 1, sequence: int = 1) -> bytes:
    """A data frame of these segments."""
    return b"".join((frame_header(FrameKind.DATA, session, sequence), *segments))


def decoded_columns(data: bytes) -> list[Sequence[object]]:
    """The columns of a segment of tuples: one sequence for each field."""
    head = parse_segment(data, 0)
    serializer = PLAIN if head.encoding == Encoding.PLAIN else PICKLE
    return decode_columns(data[head.payload_start : head.end], head.rows, serializer)


def decoded_rows(data: bytes) -> list[tuple[object, ...]]:
    """The rows of a segment of tuples, in the order of their emits; an empty tuple for each row without fields."""
    columns = decoded_columns(data)
    return list(zip(*columns, strict=True)) if columns else [()] * parse_segment(data, 0).rows
