"""What tasks have captured, as rows: one for each kept tuple. Pure."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from heron.spi.task_capture import TaskCapture
from heron_load_replay.plain_rows import LoadFileError, packed_row, read_plain

__all__ = ["CapturedTask", "LoadRow", "load_rows", "spread_us"]

_LINGER_US = 10_000  # the default of heron.instance.linger.s: no tuple of a flush has waited longer


@dataclass(frozen=True, slots=True, order=True)
class LoadRow:
    """A tuple that stands for `tuples` of them, due `due_us` after the begin; `values` is the pickle of its values."""

    due_us: int
    component: str
    task_id: int
    partition: int
    stream: str
    tuples: int
    values: bytes


@dataclass(frozen=True, slots=True)
class CapturedTask:
    """A capture, and the place of its task among those of the component."""

    capture: TaskCapture
    partition: int


def load_rows(tasks: Sequence[CapturedTask]) -> Iterator[LoadRow]:
    """Return the rows of all tasks in the order of their times, which count from the task that began first.

    Raises:
        LoadFileError: when no value of a stream could be captured, or values cannot be read.
    """
    first_s = min((each.capture.began_at_s for each in tasks), default=0.0)
    parts = [_rows_of(each, int((each.capture.began_at_s - first_s) * 1e6)) for each in tasks]
    return heapq.merge(*parts, key=lambda row: row.due_us)


def spread_us(before_us: int, at_us: int, number: int, tuples: int) -> int:
    """Return when tuple `number` (from 0) of a flush at `at_us` was emitted, if the flush before was at `before_us`."""
    begin_us = max(before_us, at_us - _LINGER_US)
    return begin_us + (at_us - begin_us) * (number + 1) // tuples


def _rows_of(task: CapturedTask, offset_us: int) -> Iterator[LoadRow]:
    """Return the rows of a task. A flush without rows has those of the flush before it, or of the first with rows."""
    capture = task.capture
    pools = {number: _first_pool(capture, number) for number in {each.stream for each in capture.flushes}}
    before_us: dict[int, int] = {}
    for flush in capture.flushes:
        stream = capture.streams[flush.stream]
        if flush.kept:
            pools[flush.stream] = _packed(flush.rows, len(stream.fields), flush.kept)
        pool = pools[flush.stream]
        kept = min(flush.tuples, len(pool))
        for place, values in enumerate(pool[:kept]):
            first, behind = (flush.tuples * each // kept for each in (place, place + 1))
            due_us = offset_us + spread_us(before_us.get(flush.stream, 0), flush.at_us, first, flush.tuples)
            identity = (capture.component, capture.task_id, task.partition, stream.name)
            yield LoadRow(due_us, *identity, behind - first, values)
        before_us[flush.stream] = flush.at_us


def _first_pool(capture: TaskCapture, number: int) -> list[bytes]:
    stream = capture.streams[number]
    for flush in capture.flushes:
        if flush.stream == number and flush.kept:
            return _packed(flush.rows, len(stream.fields), flush.kept)
    reasons = ", ".join(sorted(capture.unkept)) or "its time was spent on other streams"
    msg = (
        f"no values of stream {stream.name!r} of {capture.component}/{capture.task_id} can be captured: {reasons}; "
        "capture a component that emits plain values"
    )
    raise LoadFileError(msg)


def _packed(data: bytes, arity: int, kept: int) -> list[bytes]:
    rows = read_plain(data)
    if not isinstance(rows, list) or len(rows) != kept:
        msg = f"a flush of {kept} rows has other rows"
        raise LoadFileError(msg)
    return [packed_row((each,) if arity == 1 else _values(each, arity)) for each in rows]


def _values(row: object, arity: int) -> Sequence[object]:
    if not isinstance(row, Iterable) or len(values := tuple(row)) != arity:
        msg = f"a row is not one of {arity} values"
        raise LoadFileError(msg)
    return values
