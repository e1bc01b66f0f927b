"""The traced tuples of a received segment: when each begins and ends, and what is emitted meanwhile."""

from __future__ import annotations

from collections.abc import Collection

from heron.errors import RemoteProtocolError
from heron.instance.input.tuple_pool import TupleSource
from heron.instance.metrics.spans import SpanBuffer, span_text
from heron.instance.output.out_stream import OutStream
from heron.instance.output.stream_traces import ChildTraces, Execution
from heron.ipc.frames.frame import OptionTag, SegmentHead
from heron.ipc.frames.trace_field import TraceEntry, TraceField, parse_trace, stamp_now
from heron.spi.tracing import SpanKind, Stamp, StampKind, TraceSpan

__all__ = ["ReceivedTraces", "received_traces"]


def received_traces(
    head: SegmentHead, source: TupleSource, arrived: Stamp | None, spans: SpanBuffer
) -> ReceivedTraces | None:
    """The traced tuples of a segment; None if it has none. An option that cannot be read is counted and ignored."""
    if OptionTag.TRACE not in head.options:
        return None
    try:
        field = parse_trace(head)
    except RemoteProtocolError:
        spans.malformed += 1
        return None
    return ReceivedTraces(field, head.rows, source, arrived, spans) if field is not None else None


class ReceivedTraces:
    """Cuts the slices of a batch so that each traced tuple is executed alone, and reports a span for each."""

    def __init__(
        self, field: TraceField, rows: int, source: TupleSource, arrived: Stamp | None, spans: SpanBuffer
    ) -> None:
        self._field = field
        self._rows = rows
        self._source = source
        self._arrived = () if arrived is None else (arrived,)
        self._spans = spans
        self._waiting = list(reversed(field.entries))
        self._begun: list[tuple[TraceEntry, Execution]] = []
        self._started: Stamp | None = None

    def begin(self, done: int, size: int, streams: Collection[OutStream]) -> int:
        """The next slice begins behind `done` rows and has `size` rows; returns the size that it may have."""
        if not self._waiting or self._waiting[-1].row >= done + size:
            return size
        if self._waiting[-1].row > done:
            return self._waiting[-1].row - done
        self._begin(done + 1, streams)
        return 1

    def begin_all(self, streams: Collection[OutStream]) -> None:
        """The whole batch is executed in one call."""
        self._begin(self._rows, streams)

    def end(self, streams: Collection[OutStream]) -> None:
        """The slice has ended."""
        if self._started is None:
            return
        ended = stamp_now(StampKind.ENDED)
        of_streams = [
            (stream, stream.traces, stream.traces.end(stream.emitted + stream.waiting()))
            for stream in streams
            if isinstance(stream.traces, ChildTraces)
        ]
        self._begun[0][1].follow([(traces, rows) for _, traces, rows in of_streams], ended=True)
        for stream, traces, _ in of_streams:
            if not traces.points:
                stream.traces = None  # then its flushes cost nothing again
        for entry, execution in self._begun:
            self._spans.add(self._span(entry, execution, self._started, ended))
        self._begun.clear()
        self._started = None

    def _begin(self, end: int, streams: Collection[OutStream]) -> None:
        """What is emitted belongs to the first traced tuple of the slice: a batch is executed as a whole."""
        while self._waiting and self._waiting[-1].row < end:
            entry = self._waiting.pop()
            self._begun.append((entry, Execution(entry.trace_id, entry.budget)))
        if not self._begun:
            return
        execution = self._begun[0][1]
        for stream in streams:
            if not stream.routes.has_receivers:
                continue
            if not isinstance(stream.traces, ChildTraces):
                stream.traces = ChildTraces()
            stream.traces.begin(execution, stream.emitted + stream.waiting())
        self._started = stamp_now(StampKind.STARTED)

    def _span(self, entry: TraceEntry, execution: Execution, started: Stamp, ended: Stamp) -> TraceSpan:
        component, stream = self._source.key
        return TraceSpan(
            span_text(entry.trace_id),
            span_text(execution.span_id),
            span_text(entry.parent_id),
            SpanKind.EXECUTION,
            self._spans.component,
            self._spans.task_id,
            (*self._field.stamps_of(entry), *self._arrived, started, ended),
            source=component,
            source_task=self._source.task_id,
            stream=stream,
            rows=self._rows,
            emitted=execution.emitted,
            followed=execution.followed,
        )
