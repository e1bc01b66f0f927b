"""The columns of an output stream: batches that wait for a flush, their division, encoding and tracking.

Loaded when a component first emits columns. Like everything that emits, it belongs to the task thread, and to the
gateway while `EmitLock` lets it flush. A batch with an id or anchors leaves at once: each of its parts is one copy of
the batch's root (option UNIT), or with `ids` each row is a root.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np

from heron.api.definition import StreamDefinition
from heron.author_text import Described
from heron.errors import EmitError, HeronError, LimitExceededError
from heron.instance.metrics.spans import TracePoint
from heron.instance.output.column_routes import ColumnPart, ColumnRoutes, Numbers
from heron.instance.output.stream_origin import ColumnRecord, StreamOrigin
from heron.instance.output.stream_routes import StreamRoutes
from heron.ipc.frames.frame import MOST_ROWS, OptionTag, aligned_options, destination_lists, option
from heron.ipc.frames.tracking import COUNTER_BITS
from heron.ipc.frames.tracking_arrays import U64, edge_keys, edge_keys_of_range, fails, new_roots_listed

if TYPE_CHECKING:
    from pyarrow import RecordBatch

    from heron.api.columns import Columns

__all__ = ["ColumnOutput"]

_NUMBER_BYTES = 8  # of a row number


@dataclass(frozen=True, slots=True)
class _Lot:
    """What becomes one segment: `numbers` are the places of its rows in the emitted batch."""

    tasks: tuple[int, ...]
    numbers: Numbers
    payload: bytes


class ColumnStream(Protocol):
    """What columns need of their stream; see `heron.instance.output.out_stream.OutStream`."""

    definition: StreamDefinition
    full_limit: int
    limit: int
    origin: StreamOrigin
    points: Sequence[TracePoint]
    routes: StreamRoutes

    def count(self, rows: int) -> None:
        """Counts rows that a flush has taken."""
        ...

    def traced_in(self, numbers: Sequence[int]) -> list[tuple[int, TracePoint]]:
        """``(place, traced row)`` for each traced row of the flush that is among these, which ascend."""
        ...

    def tuples_segment(
        self,
        tasks: Sequence[int],
        payload: bytes,
        rows: int,
        options: bytes = b"",
        *,
        encoding: int | None = None,
        traced: Sequence[tuple[int, TracePoint]] = (),
    ) -> bytes:
        """A segment of rows of this stream."""
        ...


class ColumnOutput:
    """The batches of one stream since its last flush."""

    def __init__(self, stream: ColumnStream, record: ColumnRecord) -> None:
        origin = stream.origin
        self.rows = 0
        self._record = record
        self._stream = stream
        self._serializer = origin.column_serializer()
        self._compression = origin.compression(stream.definition.name)
        self._routes = ColumnRoutes(stream.routes, self._serializer)
        self._waiting: list[RecordBatch] = []
        self._bytes = 0
        self._keys_checked = False

    def checked(self, columns: Columns) -> RecordBatch:
        """What an author emits, as a batch of this stream.

        Raises:
            EmitError: when it has other columns than the stream has fields, other types than the batches before it, or
                a key of a type that rows cannot be grouped by.
        """
        stream = self._stream.definition
        try:
            batch = self._serializer.batch_of(columns, stream.fields)
            if not self._keys_checked:
                self._routes.check_keys(batch)
                self._keys_checked = True
            types = self._serializer.types_of(batch)
            if types != self._record.types:
                self._take_types(types)
        except EmitError as error:
            msg = f"stream {stream.name!r}: {error}"
            raise EmitError(msg) from error
        return batch

    def copied(self, batch: RecordBatch) -> RecordBatch:
        """The same rows in memory that no author changes."""
        return self._serializer.copy(batch)

    def parts(self, batch: RecordBatch, direct: int | None) -> list[ColumnPart]:
        """The parts of a batch for its tasks. This may call code of the author, and changes nothing.

        Raises:
            EmitError: when a custom grouping chooses a task that is not its consumer's.
        """
        return list(self._routes.parts(batch, direct))

    def may_wait(self, direct: int | None) -> bool:
        """Whether an untracked batch may wait for a flush: an author's grouping must fail at the emit, if it does."""
        return direct is None and not self._routes.calls_author

    def segments_of(self, parts: Sequence[ColumnPart], rows: int) -> list[bytes]:
        """The segments of an untracked batch of `rows` rows, by its parts."""
        self._stream.count(rows)
        return [self._segment(lot) for lot in self._lots(parts, [])]

    def add(self, batch: RecordBatch) -> list[bytes]:
        """Appends an untracked batch; returns the segments that are due: of a full batch, or after the linger.

        A batch that waits is copied, because the author may change memory that it shares.
        """
        before = self.flush() if self._waiting and self._waiting[-1].schema != batch.schema else []
        self.rows += batch.num_rows
        self._bytes += batch.nbytes
        if not self._stream.limit or self._bytes >= self._stream.origin.batch_bytes:
            self._waiting.append(batch)
            return before + self.flush()
        self._waiting.append(self.copied(batch))
        return before

    def flush(self) -> list[bytes]:
        """The segments of the batches that wait."""
        if not self._waiting:
            return []
        batch = self._serializer.concat(self._waiting)
        self._waiting, self.rows, self._bytes = [], 0, 0
        self._stream.limit = self._stream.full_limit
        return self.segments_of(self.parts(batch, None), batch.num_rows)

    def root_segments(self, parts: Sequence[ColumnPart], rows: int, base: int, *, each: bool) -> list[bytes]:
        """The segments of a batch with roots from `base` on: one for `each` of its rows, or one in all."""
        stream, task_id = self._stream, self._stream.origin.task_id
        first = (task_id << COUNTER_BITS) | base
        stream.count(rows)
        if each:
            segments, totals, bad = self._rows(parts, rows, first)
        else:
            segments, total, lost = self._unit(parts, np.array([first], dtype=np.uint64))
            totals, bad = np.array([total], dtype=np.uint64), [0] if lost else []
        failed: list[bytes] = []
        if bad:
            totals[bad] |= np.uint64(1)  # not zero: in flight until its fail, which follows directly, is read
            failed = list(fails(np.array(bad, dtype=np.uint64) + np.uint64(first)))
        return [*new_roots_listed(task_id, base, totals), *segments, *failed]

    def anchored_segments(self, parts: Sequence[ColumnPart], rows: int, roots: U64) -> tuple[list[bytes], int]:
        """``(segments, key)`` of a batch under these roots; `key` is the XOR of the keys of its copies."""
        self._stream.count(rows)
        segments, total, lost = self._unit(parts, roots)
        if lost:
            total ^= secrets.randbits(64)  # never acked: acks of the anchors overtake data, and so would this fail
            segments += fails(roots)
        return segments, total

    def _take_types(self, types: tuple[str, ...]) -> None:
        fields = self._stream.definition.fields
        for field, before, now in zip(fields, self._record.types, types, strict=False):
            if before != now:
                msg = f"field {field!r} has the type {now}, the batches before had {before}; cast it to one type"
                raise EmitError(msg)
        self._record.types = types

    def _unit(self, parts: Sequence[ColumnPart], roots: U64) -> tuple[list[bytes], int, bool]:
        """``(segments, XOR of the keys of all copies, whether a row was lost)``."""
        total, bad, segments = 0, list[int](), list[bytes]()
        if len(roots) == 1:
            listed = option(OptionTag.ROOT_BASE, roots.tobytes())
        else:
            of_row = np.zeros(len(roots), dtype=np.int64)
            listed = option(OptionTag.ROOTS, roots.tobytes()) + option(OptionTag.ROOT_ROWS, of_row.tobytes())
        most_bytes = self._stream.origin.options_max_bytes
        if len(listed) > most_bytes:
            for part in parts:
                self._reject(part, self._stream.origin.too_many_roots(len(listed)), bad)
            return [], 0, bool(bad)
        for lot in self._lots(parts, bad):
            batch_key = secrets.randbits(64)
            for task in lot.tasks:
                total ^= int(edge_keys_of_range(batch_key, 1, task)[0])
            options = option(OptionTag.BATCH_KEY, batch_key.to_bytes(8, "little")) + listed
            segments.append(self._segment(lot, options + option(OptionTag.UNIT, b"")))
        return segments, total, bool(bad)

    def _rows(self, parts: Sequence[ColumnPart], rows: int, first: int) -> tuple[list[bytes], U64, list[int]]:
        """``(segments, XOR of the keys of each row's copies, rows that were lost)``."""
        totals, bad, segments = np.zeros(rows, dtype=np.uint64), list[int](), list[bytes]()
        batch_key, root_base = secrets.randbits(64), option(OptionTag.ROOT_BASE, first.to_bytes(8, "little"))
        most_rows = self._stream.origin.options_max_bytes // _NUMBER_BYTES
        for lot in self._lots(parts, bad, most_rows - 16):  # the other options take less than 16 numbers
            numbers = np.asarray(lot.numbers, dtype=np.int64)
            for task in lot.tasks:
                totals[numbers] ^= edge_keys(batch_key, numbers.astype(np.uint64), task)
            options = option(OptionTag.BATCH_KEY, batch_key.to_bytes(8, "little")) + root_base
            segments.append(self._segment(lot, options + option(OptionTag.ROW_NUMBERS, numbers.tobytes())))
            batch_key = secrets.randbits(64)
        return segments, totals, bad

    def _segment(self, lot: _Lot, options: bytes = b"") -> bytes:
        stream, rows = self._stream, len(lot.numbers)
        self._record.segments += 1
        self._record.payload_bytes += len(lot.payload)
        padded = aligned_options(lot.tasks, options)
        traced = stream.traced_in(lot.numbers) if stream.points else ()  # type: ignore[arg-type]  # an array or a range
        encoding = self._serializer.encoding
        return stream.tuples_segment(lot.tasks, lot.payload, rows, padded, encoding=encoding, traced=traced)

    def _lots(self, parts: Sequence[ColumnPart], bad: list[int], most_rows: int = MOST_ROWS) -> Iterator[_Lot]:
        """The parts as payloads of the wanted size, of at most `most_rows` each; adds rows that are lost to `bad`."""
        for part in parts:
            rows = part.batch.num_rows
            least = -(-rows // most_rows)
            pieces = max(1, least, min(rows, part.batch.nbytes // self._stream.origin.batch_bytes))
            for piece in range(pieces):
                yield from self._encoded(part.slice(rows * piece // pieces, rows * (piece + 1) // pieces), bad)

    def _encoded(self, part: ColumnPart, bad: list[int]) -> Iterator[_Lot]:
        origin, rows = self._stream.origin, part.batch.num_rows
        try:
            payload = self._serializer.encode_batch(part.batch, self._compression)
        except HeronError as error:
            self._reject(part, error, bad)
            return
        if len(payload) <= origin.tuple_max_bytes and (rows == 1 or len(payload) <= 2 * origin.batch_bytes):
            for tasks in destination_lists(part.tasks):
                yield _Lot(tuple(tasks), part.numbers, payload)
        elif rows == 1:
            msg = (
                f"row {part.numbers[0]} of a batch takes {len(payload)} bytes, which exceeds heron.tuple.max.bytes, "
                f"{origin.tuple_max_bytes} bytes; emit a reference to the data, or raise the limit in the profile's "
                "engine section"
            )
            self._reject(part, LimitExceededError(msg), bad)
        else:
            yield from self._encoded(part.slice(0, rows // 2), bad)
            yield from self._encoded(part.slice(rows // 2, rows), bad)

    def _reject(self, part: ColumnPart, error: Exception, bad: list[int]) -> None:
        bad.extend(map(int, part.numbers))
        what = Described(
            f"{part.batch.num_rows} rows of ({', '.join(self._stream.definition.fields)}), from row {part.numbers[0]}"
        )
        self._stream.origin.rejected(self._stream.definition.name, what, error)
