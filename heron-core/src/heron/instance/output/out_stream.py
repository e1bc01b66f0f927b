"""One declared output stream of a task: the rows emitted since the last flush.

Emits append to a buffer in the order of emission. Grouping, encoding and framing happen once per flush. Rows that
several tasks receive whole (one task, `lowest`, `all`) become one segment with many destinations, encoded once.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, cast

from heron.api.definition import StreamDefinition
from heron.driver_kit.loading import load_object
from heron.errors import EmitError
from heron.instance.codec.batch_codec import rows_of
from heron.instance.metrics.spans import SpanBuffer, TracePoint
from heron.instance.output.stream_origin import ColumnRecord, StreamOrigin
from heron.instance.output.stream_routes import FollowedRows, StreamRoutes
from heron.instance.output.stream_traces import RootTraces, StreamTraces
from heron.ipc.frames.frame import SegmentKind, destination_lists, segment
from heron.ipc.frames.trace_field import MOST_ENTRIES, TraceEntry, trace_option, traced_segment
from heron.spi.serializer import Encoding

if TYPE_CHECKING:  # needs numpy; loaded when a component first emits columns
    from pyarrow import RecordBatch

    from heron.instance.output.column_output import ColumnOutput
    from heron.instance.output.stream_shedder import StreamShedder

__all__ = ["OutStream", "column_output", "trace_roots"]

_FIRST_LIMIT = 16  # rows of unknown size: the limit grows once the first rows have been measured
_LIMIT_FACTOR = 8  # with several destinations a flush takes more rows, so that each destination gets a full batch


def column_output(stream: OutStream, record: ColumnRecord) -> ColumnOutput:
    """The columns of a stream; the first call imports numpy.

    Raises:
        PluginError: when the topology was submitted without a serializer of columns.
    """
    made = cast("type[ColumnOutput]", load_object("heron.instance.output.column_output:ColumnOutput", "columns"))
    return made(stream, record)


class OutStream:
    """The buffer of one stream: its rows that wait for a flush.

    `limit` is the number of rows that make the next flush. The generated emit compares the buffer with it and reads no
    clock: when the linger after a flush is over, `Emitter.end_linger` sets `limit` to zero, and the next emit flushes.
    It also starts at zero. `direct` holds the task of the present emit, if that emit names one. `points` are the traced
    rows of the flush under way; only a task that traces has `traces`. `kept` is the option of segments whose rows were
    kept with a probability; only a stream that sheds tuples has a `shedder`.
    """

    __slots__ = (
        "arity",
        "columns",
        "definition",
        "direct",
        "emitted",
        "full_limit",
        "kept",
        "limit",
        "number",
        "origin",
        "points",
        "routes",
        "rows",
        "shedder",
        "tasks_of_last",
        "traces",
    )

    def __init__(self, number: int, definition: StreamDefinition, routes: StreamRoutes, origin: StreamOrigin) -> None:
        self.number = number
        self.definition = definition
        self.routes = routes
        self.origin = origin
        self.arity = len(definition.fields)
        self.rows: list[object] = []
        self.columns: ColumnOutput | None = None
        self.full_limit = min(_FIRST_LIMIT, origin.batch_rows)
        self.limit = 0
        self.direct: tuple[int, ...] = ()
        self.emitted = 0
        self.tasks_of_last: tuple[int, ...] = ()
        self.traces: StreamTraces | None = None
        self.points: Sequence[TracePoint] = ()
        self.kept = b""
        self.shedder: StreamShedder | None = None

    def flush(self) -> list[bytes]:
        """Takes the batches and rows that wait, and returns their segments. Batches were emitted before rows."""
        if self.columns is not None and self.columns.rows:
            return [*self.columns.flush(), *self.segments_of(self.take_rows())]
        if self.shedder is not None and self.shedder.probabilities:
            return self.shedder.flush_parts(self)
        return self.segments_of(self.take_rows())

    def waiting(self) -> int:
        """Rows that wait for a flush, in either form."""
        return len(self.rows) + (self.columns.rows if self.columns is not None else 0)

    def emit_columns(self, columns: ColumnOutput, batch: RecordBatch, direct: int | None) -> list[bytes]:
        """Appends a batch behind everything that was emitted before; returns the segments that are due.

        Raises:
            EmitError: when a custom grouping chooses a task that is not its consumer's; nothing has changed.
        """
        if columns.may_wait(direct):
            before = self.flush() if self.rows else []
            return [*before, *columns.add(batch)]
        parts = columns.parts(batch, direct)
        return [*self.flush(), *columns.segments_of(parts, batch.num_rows)]

    def segments_of(self, rows: list[object]) -> list[bytes]:
        """The segments of rows that were taken from the head of the buffer; tracked streams add roots and keys."""
        if not rows:
            return []
        if self.points:
            return self._traced_segments_of(rows)
        segments: list[bytes] = []
        tasks: list[int] = []
        routes = self.routes
        if routes.whole:
            tasks.extend(routes.whole)
            self._encode(routes.whole, rows, segments)
        for splitter in routes.splitters:
            for task, part in splitter.split(rows):
                tasks.append(task)
                self._encode((task,), part, segments)
        self.tasks_of_last = tuple(tasks)
        return segments

    def whole_plain(self, payload: bytes, rows: int, of_rows: object, options: bytes = b"") -> list[bytes] | None:
        """The segments of an encoded batch for tasks that receive all its rows; None if it has to be decoded.

        `of_rows` is what tracked streams know of the rows: ids of roots, or anchors.
        """
        tasks = self.tasks_of_last = self.routes.whole
        self.count(rows)
        return [
            self.tuples_segment(chosen, payload, rows, options, encoding=Encoding.PLAIN)
            for chosen in (destination_lists(tasks) if tasks else ())
        ]

    def add_plain(self, columns: list[Sequence[object]], rows: int, of_rows: object) -> None:
        """Appends the rows of a decoded batch, whose values can all be keys, as emits would."""
        for edge in self.routes.keyed:
            if edge.picks is not None:
                keys = [columns[position] for position in edge.positions]
                edge.picks.extend(map(edge.memo.__getitem__, keys[0] if len(keys) == 1 else zip(*keys, strict=True)))
        self.rows += columns[0] if len(columns) == 1 else rows_of(columns, rows)

    def take_rows(self, most: int | None = None) -> list[object]:
        """Takes the rows of the buffer, or the first `most`."""
        rows = self.rows[:most]  # emits may append behind them meanwhile (heron.instance.output.emit_lock.EmitLock)
        del self.rows[: len(rows)]
        if (sample := self.origin.inspected.sample) is not None:
            sample.emit(self.definition.name, self.definition.fields, rows)
        self.limit = self.full_limit
        self.count(len(rows))
        return rows

    def take_back(self) -> bool:
        """Removes the row of the last emit; returns whether it was there: the gateway may have flushed it."""
        if not self.rows:
            return False
        self.rows.pop()
        self.routes.take_back()
        if self.shedder is not None and self.shedder.probabilities:
            self.shedder.probabilities.pop()
        return True

    def limit_to(self, rows: int) -> None:
        """The next flush must take no more rows."""
        self.limit = min(self.limit, rows)
        if self.traces is not None:
            self.traces.most_rows = rows

    def count(self, rows: int) -> None:
        """Counts rows that a flush has taken."""
        if self.traces is None:
            self.points = ()  # the flush before may have been the last one with traced rows
        else:
            self.points = self.traces.taken(self.emitted, rows)
            self.limit = self.traces.capped(self.limit, self.emitted + rows)
        self.emitted += rows

    def undirected(self) -> EmitError:
        """The error for an emit without a task on a stream whose consumers all subscribe with Grouping.DIRECT."""
        return EmitError(
            f"stream {self.definition.name!r}: nobody receives this tuple, because all consumers subscribe with "
            f"Grouping.DIRECT; give direct_task, one of {sorted(self.routes.direct_tasks)}"
        )

    def wrong_values(self, values: object) -> EmitError:
        """The error for values that do not fit the declared fields."""
        if isinstance(values, list | tuple):
            what = f"{len(values)} values"
        else:
            what = f"a {type(values).__name__}, not a list of values"
        remedy = "; emit [value] for one field" if isinstance(values, str | bytes) else ""
        fields = ", ".join(self.definition.fields)
        return EmitError(
            f"stream {self.definition.name!r}: emit of {what}, the stream declares {self.arity} "
            f"fields ({fields}){remedy}"
        )

    def _encode(
        self, tasks: tuple[int, ...], rows: list[object], segments: list[bytes], places: Sequence[int] = ()
    ) -> None:
        """Appends the segments of a part of a flush; its traced rows have these places, in the order of `points`."""
        traced: list[tuple[int, TracePoint]] = []
        rejected, at = self._reject, 0
        if places:
            traced = [(place, point) for place, point in zip(places, self.points, strict=True) if place >= 0]

            def rejected(row: object, error: Exception) -> None:
                nonlocal at
                at += 1
                self._reject(row, error)

        for part, payload in self.origin.encoded(rows, self.definition.fields, rejected):
            self.adapt(len(part), len(payload))
            found = [(place - at, point) for place, point in traced if at <= place < at + len(part)] if traced else ()
            segments += [
                self.tuples_segment(chosen, payload, len(part), traced=found) for chosen in destination_lists(tasks)
            ]
            at += len(part)

    def _traced_segments_of(self, rows: list[object]) -> list[bytes]:
        """The same, where some rows are traced."""
        segments: list[bytes] = []
        followed = FollowedRows([each.row for each in self.points])
        parts = [(self.routes.whole, rows, followed.rows)] if self.routes.whole else []
        for splitter in self.routes.splitters:
            split = [((task,), part) for task, part in splitter.split(rows, followed)]
            parts += [(tasks, part, followed.take(tasks[0])) for tasks, part in split]
        self.tasks_of_last = tuple(task for tasks, _, _ in parts for task in tasks)
        for tasks, part, places in parts:
            self._encode(tasks, part, segments, places)
        return segments

    def traced_in(self, numbers: Sequence[int]) -> list[tuple[int, TracePoint]]:
        """``(place, traced row)`` for each traced row of the flush that is among these, which ascend."""
        found = []
        for point in self.points:
            place = bisect_left(numbers, point.row)
            if place < len(numbers) and numbers[place] == point.row:
                found.append((place, point))
        return found

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
        """A segment of rows of this stream; `encoding` None is that of its rows. `traced` has places in the segment."""
        origin = self.origin
        if traced and (entries := self._entries(traced)):
            return traced_segment(
                self.tuples_segment(tasks, payload, rows, trace_option(entries) + options, encoding=encoding)
            )
        return segment(
            tasks,
            payload,
            kind=SegmentKind.TUPLES,
            encoding=origin.serializer.encoding if encoding is None else encoding,
            stream=self.number,
            plan_version=origin.plan_version,
            source_task=origin.task_id,
            incarnation=origin.incarnation,
            rows=rows,
            options=options + self.kept,
        )

    def _entries(self, traced: Sequence[tuple[int, TracePoint]]) -> list[TraceEntry]:
        """The traced rows of a segment; the copies of a row for several consumers share its budget."""
        copies = len(self.routes.whole) + len(self.routes.splitters)
        shares = [(place, point, point.budget // copies) for place, point in traced[:MOST_ENTRIES]]
        entries = [
            TraceEntry(point.trace_id, point.parent_id, place, share, point.emitted_ns)
            for place, point, share in shares
            if share
        ]
        self.origin.spans.cut += len(traced) - len(entries)
        return entries

    def adapt(self, rows: int, payload_bytes: int) -> None:
        """Sets how many rows make a batch of the wanted size, by the size of the last rows."""
        destinations = max(1, min(_LIMIT_FACTOR, len(self.tasks_of_last)))
        fitting = self.origin.batch_bytes * rows // max(1, payload_bytes)
        wanted = max(1, min(self.origin.batch_rows, fitting)) * destinations
        self.limit = self.full_limit = min(wanted, 4 * max(self.full_limit, rows))
        if self.traces is not None:
            self.limit = self.traces.capped(self.limit, self.emitted)

    def _reject(self, row: object, error: Exception) -> None:
        self.origin.rejected(self.definition.name, row, error)


def trace_roots(streams: Iterable[OutStream], one_in: int, spans: SpanBuffer) -> None:
    """Traces one in a number of the rows of each of a spout's streams; 0: none. Rows that nobody receives are not."""
    for stream in streams:
        stream.traces = RootTraces(one_in, spans) if one_in and stream.routes.has_receivers else None
