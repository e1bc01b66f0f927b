"""The traced rows of an output stream: which rows are traced, and where they are when the stream is flushed.

Rows are numbered as the stream emits them. A spout stream chooses rows itself, one in a number of roots. A bolt stream
follows the rows that are emitted while a traced tuple is executed. Untraced rows cost nothing: the emit of a spout's
traced row reaches the row limit of its stream, which is set to it.
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import replace
from itertools import chain
from operator import itemgetter
from typing import Protocol

from heron.clock import monotonic_ns
from heron.instance.metrics.spans import SpanBuffer, TracePoint, new_id
from heron.ipc.frames.trace_field import stamp_now
from heron.spi.tracing import StampKind

__all__ = [
    "BUDGET",
    "MOST_CHILDREN",
    "ChildTraces",
    "Execution",
    "RootTraces",
    "StreamTraces",
    "TracedStream",
]

BUDGET = 256
"""The most spans of a trace."""

MOST_CHILDREN = 8
"""The most children of a span."""

_LEAST_DISTANCE_NS = 50_000_000  # between two traces of a task: each costs spans in the metrics of all tasks on its way


class TracedStream(Protocol):
    """What traces need of their stream; see `heron.instance.output.out_stream.OutStream`."""

    emitted: int
    full_limit: int
    limit: int
    rows: list[object]

    def waiting(self) -> int:
        """The rows that are not flushed."""
        ...


class StreamTraces(Protocol):
    """The traced rows of one stream. `emitted` is the number of the stream's first row that is not flushed.

    `most_rows` is a row limit besides that of the stream, which a traced row must not lift.
    """

    most_rows: float

    def passed(self, stream: TracedStream) -> bool:
        """An emit has reached the row limit. Whether only a traced row was there, and no flush is due."""
        ...

    def capped(self, limit: int, emitted: int) -> int:
        """The row limit that the next traced row allows."""
        ...

    def emitting(self, first: int, rows: int) -> None:
        """A batch of columns is being emitted; `first` is the number of its first row."""
        ...

    def taken(self, emitted: int, rows: int) -> Sequence[TracePoint]:
        """The traced rows among those that a flush takes, numbered from 0 on."""
        ...


class RootTraces:
    """Traces one in a number of the rows of a spout's stream, a random one of them."""

    def __init__(self, one_in: int, spans: SpanBuffer) -> None:
        self.most_rows = math.inf
        self._one_in = one_in
        self._spans = spans
        self._window_end = 0
        self._points: list[TracePoint] = []
        self._last_ns = -_LEAST_DISTANCE_NS
        self._next = 0
        self._choose(0)

    def passed(self, stream: TracedStream) -> bool:
        """`StreamTraces.passed`."""
        if stream.emitted + stream.waiting() != self._next + 1:
            return False
        self._trace(self._next)
        most = int(min(stream.full_limit, self.most_rows))
        flush_is_due = not stream.limit or len(stream.rows) >= most
        if not flush_is_due:
            stream.limit = self.capped(most, stream.emitted)
        return not flush_is_due

    def capped(self, limit: int, emitted: int) -> int:
        """`StreamTraces.capped`."""
        return min(limit, self._next - emitted + 1)

    def emitting(self, first: int, rows: int) -> None:
        """`StreamTraces.emitting`. One row of a batch is enough, because the batch is executed as a whole."""
        if self._next < first + rows:
            self._trace(max(first, self._next))
            self._choose(first + rows)

    def taken(self, emitted: int, rows: int) -> Sequence[TracePoint]:
        """`StreamTraces.taken`."""
        end = emitted + rows
        if self._next < end:
            self._choose(end)  # the gateway has flushed the row before its emit saw the limit
        taken = [replace(each, row=each.row - emitted) for each in self._points if each.row < end]
        self._points = [each for each in self._points if each.row >= end]
        return taken

    def _trace(self, row: int) -> None:
        stamp = stamp_now(StampKind.EMITTED)
        if stamp.monotonic_ns - self._last_ns >= _LEAST_DISTANCE_NS:
            self._last_ns = stamp.monotonic_ns
            trace_id, span_id = new_id(), new_id()
            self._points.append(TracePoint(row, trace_id, span_id, BUDGET - 1, stamp.monotonic_ns))
            self._spans.add(self._spans.root_span(trace_id, span_id, stamp))
        self._choose(row + 1)

    def _choose(self, least: int) -> None:
        """Chooses the next traced row: one of each `one_in`."""
        while True:
            start = max(self._window_end, least - least % self._one_in)
            self._window_end = start + self._one_in
            self._next = start + random.randrange(self._one_in)  # noqa: S311  # a sample, not a secret
            if self._next >= least:
                return


class Execution:
    """One execution of a traced tuple, and the children that it may still have."""

    def __init__(self, trace_id: int, budget: int) -> None:
        self.trace_id = trace_id
        self.span_id = new_id()
        self.emitted = 0
        self.followed = 0
        self._left = budget - 1

    def follow(self, streams: Sequence[tuple[ChildTraces, range]], *, ended: bool) -> None:
        """Follows the first of these rows of each stream, which this execution has emitted, in turn.

        They share the budget. Before the execution has ended, half of it is kept for what comes later.
        """
        rows = sum(len(each) for _, each in streams)
        self.emitted += rows
        budget = self._left if ended else self._left // 2
        count = min(rows, MOST_CHILDREN - self.followed, budget)
        if count <= 0:
            return
        share, now_ns = budget // count, monotonic_ns()
        self.followed += count
        self._left -= share * count
        firsts = [[(place, traces, row) for place, row in enumerate(each[:count])] for traces, each in streams]
        for _, traces, row in sorted(chain(*firsts), key=itemgetter(0))[:count]:
            traces.points.append(TracePoint(row, self.trace_id, self.span_id, share, now_ns))


class ChildTraces:
    """The rows of a bolt's stream that belong to traced executions."""

    def __init__(self) -> None:
        self.most_rows = math.inf
        self._execution: Execution | None = None
        self._first = 0
        self.points: list[TracePoint] = []

    def begin(self, execution: Execution, first: int) -> None:
        """Rows from number `first` on belong to this execution."""
        self._execution, self._first = execution, first

    def end(self, end: int) -> range:
        """The execution has ended; `end` is the number of the next row. Returns its rows that are not flushed."""
        self._execution = None
        return range(self._first, max(self._first, end))

    def passed(self, stream: TracedStream) -> bool:
        """`StreamTraces.passed`."""
        return False

    def capped(self, limit: int, emitted: int) -> int:
        """`StreamTraces.capped`."""
        return limit

    def emitting(self, first: int, rows: int) -> None:
        """`StreamTraces.emitting`."""

    def taken(self, emitted: int, rows: int) -> Sequence[TracePoint]:
        """`StreamTraces.taken`."""
        end = emitted + rows
        if self._execution is not None and end > self._first:  # a flush during the execution
            self._execution.follow([(self, range(self._first, end))], ended=False)
            self._first = end
        taken = [replace(each, row=each.row - emitted) for each in self.points if each.row < end]
        self.points = [each for each in self.points if each.row >= end]
        return taken
