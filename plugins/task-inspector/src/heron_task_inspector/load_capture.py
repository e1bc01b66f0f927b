"""What a task emits, for a command that captures the load of a topology.

The task calls `LoadCapture.emit` once per flush while a capture is under way, and pays for it. So a flush keeps no more
rows than a hundredth of the time since the begin allows: `RowBudget` decides.
"""

from __future__ import annotations

import os
import socket
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from heron.clock import monotonic_s, thread_cpu_s, wall_s
from heron.spi.inspected_task import FirstRows, InspectedTask
from heron.spi.task_capture import CapturedFlush, CapturedStream, CaptureShape, TaskCapture
from heron_task_inspector.plain_pickle import UnkeptError, plain_pickle
from heron_task_inspector.value_shape import ValueShape

if TYPE_CHECKING:
    from pyarrow import RecordBatch

__all__ = ["LoadCapture", "RowBudget", "capture_of"]

_RowsBy = Callable[[int], Sequence[object]]
"""Every so many-th row of a flush."""

_LOOK_S = 0.1  # how late it sees that the process ends
_SHARE = 0.01  # of the time of the task
_LONGEST_S = 0.001  # of one call, by the contract of samplers
_WORTH_S = 0.0002  # of it for one flush: the first row of a flush costs as much as many others
_FIRST_ROW_S = 5e-6  # what a row costs until the first were kept
_SKIP_S = 3e-6  # what a flush costs that is only counted; to read the clock again would cost as much
_BETWEEN_S = 0.01  # at most, of two records of a stream: frequent flushes without rows are one record
_FLUSH_BYTES = 64  # of a flush without its rows, in the answer


class RowBudget:
    """How many rows a flush may keep. Pure: the times are given, in seconds; what is spent is processor time."""

    def __init__(self, began_s: float) -> None:
        self._began_s = began_s
        self._spent_s = 0.0
        self._row_s = _FIRST_ROW_S

    def rows(self, now_s: float) -> int:
        """Return how many rows fit into the time that is left now; 0 while too little of it is left."""
        left_s = _SHARE * (now_s - self._began_s) + _LONGEST_S - self._spent_s
        return int(min(left_s, _LONGEST_S) / self._row_s) if left_s >= _WORTH_S else 0

    def spend(self, rows: int, took_s: float) -> None:
        """Note what a flush has taken, and what its rows have cost each."""
        self._spent_s += took_s
        if rows:
            self._row_s = max(1e-9, (self._row_s + took_s / rows) / 2)


class LoadCapture:
    """Fills up to `most_bytes`; what is emitted later is only counted."""

    def __init__(self, most_bytes: int, shape: CaptureShape | None) -> None:
        self.began_s = monotonic_s()
        self.streams: list[CapturedStream] = []
        self.flushes: list[CapturedFlush] = []
        self.after_limit = 0
        self.unkept: Counter[str] = Counter()
        self._open: dict[str, _OpenStream] = {}
        self._left_bytes = most_bytes
        self._shape = ValueShape(shape) if shape is not None else None
        self._budget = RowBudget(self.began_s)

    def receive(self, key: tuple[str, str], task_id: int, fields: Sequence[str], first_rows: FirstRows) -> None:
        """Task thread: what the task receives is not captured."""

    def emit(self, stream: str, fields: Sequence[str], rows: Sequence[object]) -> None:
        """Task or gateway thread: records a flush."""
        if rows:
            self._record(stream, fields, len(rows), lambda step: rows[::step])

    def emit_columns(self, stream: str, fields: Sequence[str], batch: RecordBatch) -> None:
        """Task thread: records a batch of columns as its rows."""

        def kept(step: int) -> Sequence[object]:
            columns = [each[::step].to_pylist() for each in batch.columns]
            return columns[0] if len(columns) == 1 else list(zip(*columns, strict=True))

        if batch.num_rows:
            self._record(stream, fields, batch.num_rows, kept)

    def _record(self, stream: str, fields: Sequence[str], tuples: int, rows_by: _RowsBy) -> None:
        now_s = monotonic_s()
        if self._left_bytes < _FLUSH_BYTES:
            self.after_limit += tuples
            return
        found = self._open.get(stream)
        if found is None:
            found = self._open[stream] = _OpenStream(len(self.streams))
            self.streams.append(CapturedStream(stream, tuple(fields)))
        most = self._budget.rows(now_s)
        if not most and now_s - found.recorded_s < _BETWEEN_S:
            found.skipped += tuples
            self._budget.spend(0, _SKIP_S)
            return
        began_cpu_s = thread_cpu_s()
        kept, data = self._kept(stream, fields, tuples, most, rows_by) if most else (0, b"")
        self._add(found, now_s, tuples, kept, data)
        self._budget.spend(kept, thread_cpu_s() - began_cpu_s)

    def _kept(self, stream: str, fields: Sequence[str], tuples: int, most: int, rows_by: _RowsBy) -> tuple[int, bytes]:
        """Return the number and the pickle of the rows of a flush that are kept, at most `most`."""
        try:
            rows = rows_by(-(-tuples // most))
            shaped = rows if self._shape is None else self._shape.rows(stream, fields, rows)
            return len(rows), plain_pickle(shaped)
        except UnkeptError as error:
            self.unkept[str(error)] += tuples
            return 0, b""

    def _add(self, found: _OpenStream, now_s: float, tuples: int, kept: int, data: bytes) -> None:
        """Add a record, with the tuples of the flushes before it that were skipped."""
        tuples += found.skipped
        found.skipped, found.recorded_s = 0, now_s
        size_bytes = len(data) + _FLUSH_BYTES
        if size_bytes > self._left_bytes:
            self._left_bytes = 0
            self.after_limit += tuples
            return
        self._left_bytes -= size_bytes
        self.flushes.append(CapturedFlush(int((now_s - self.began_s) * 1e6), found.number, tuples, kept, data))

    def end(self) -> None:
        """Record what was skipped last."""
        for each in self._open.values():
            if each.skipped:
                self._add(each, monotonic_s(), 0, 0, b"")


@dataclass(slots=True)
class _OpenStream:
    """A stream, by its number: when it was recorded last, and the tuples since then."""

    number: int
    recorded_s: float = 0.0
    skipped: int = 0


def capture_of(
    task: InspectedTask, seconds: float, most_bytes: int, shape: CaptureShape | None, stop: threading.Event
) -> TaskCapture:
    """What the task emits in some seconds; `stop` ends it early."""
    began_at_s = wall_s()
    capture = LoadCapture(most_bytes, shape)
    ends_s = capture.began_s + seconds
    task.sample = capture
    try:
        while (left_s := ends_s - monotonic_s()) > 0 and not stop.is_set():
            stop.wait(min(left_s, _LOOK_S))
    finally:
        task.sample = None
    capture.end()
    identity = task.identity
    return TaskCapture(
        topology=identity.topology,
        component=identity.component,
        task_id=identity.task_id,
        container_id=identity.container_id,
        incarnation=identity.incarnation,
        pid=os.getpid(),
        host=socket.gethostname(),
        began_at_s=began_at_s,
        lasted_s=round(monotonic_s() - capture.began_s, 3),
        streams=tuple(capture.streams),
        flushes=tuple(capture.flushes),
        after_limit=capture.after_limit,
        unkept=dict(capture.unkept),
    )
