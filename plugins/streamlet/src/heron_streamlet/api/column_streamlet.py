"""Streams of columns: the elements are record batches, and authors' functions are called once for each batch."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Generic, TypeVar

import pyarrow as pa

from heron.api.names import is_a
from heron.errors import TopologyError
from heron_streamlet.api.stream import Draft, Stream, called
from heron_streamlet.api.streamlet import DAY_S, Streamlet
from heron_streamlet.arrow.aggregates import ColumnAggregate, ColumnFold, row_count
from heron_streamlet.arrow.steps import ColumnNamed, FilterRows, MapBatch, Select, SplitRows
from heron_streamlet.connectors.sinks import Sink
from heron_streamlet.plan.graph import LATE, Input
from heron_streamlet.plan.operators import (
    AssignEventTime,
    ColumnStep,
    Consume,
    Gather,
    Pass,
    Repartition,
    Union,
    Windowed,
    Write,
)
from heron_streamlet.runtime.early_results import early_results
from heron_streamlet.windowing.keyed_operators import WindowFold
from heron_streamlet.windowing.window import Duration, KeyedWindow, SlidingWindow, Window, WindowResult, micros

__all__ = ["ColumnStreamlet", "WindowedColumns", "gathered"]

P = TypeVar("P")
R = TypeVar("R")

_MOST_ROWS = 1 << 20


class ColumnStreamlet(Stream):
    """A stream of record batches. Its rows are the records; how they are divided in batches means nothing.

    A function that fails costs the records of its batch.
    """

    elements = "columns"

    def map_columns(self, function: Callable[[pa.RecordBatch], object]) -> ColumnStreamlet:
        """Call a function for each batch; the batches that it returns are the new stream.

        Args:
            function: returns a `RecordBatch`, a `Table`, or a mapping of names to arrays. Behind `event_time` it must
                keep the number and order of the rows.
        """
        return self._stepped(MapBatch(called(function, "map_columns")), "mapcolumns")

    def filter_columns(self, function: Callable[[pa.RecordBatch], object]) -> ColumnStreamlet:
        """Keep the rows for which the function's array has true; null is not true.

        Args:
            function: called with a batch; returns an array of true or false, one for each row.
        """
        return self._stepped(FilterRows(called(function, "filter_columns")), "filtercolumns")

    def select(self, *names: str) -> ColumnStreamlet:
        """Keep these columns, in this order.

        Raises:
            TopologyError: when no name is given, or one is not a string.
        """
        return self._stepped(Select(_names(names, "select")), "select")

    def event_time(
        self,
        column: str | Callable[[pa.RecordBatch], object],
        *,
        lag: Duration = 0,
        idle_after: Duration | None = None,
        max_ahead: Duration | None = DAY_S,
    ) -> ColumnStreamlet:
        """Say when each row happened, as `Streamlet.event_time`. The order of rows is that of the source.

        Args:
            column: the name of a column of timestamps with a time zone, or of seconds since 1970-01-01T00:00:00Z; or a
                function that returns such an array for a batch.
            lag: how much older than the newest row of its source partition a row may be without being late.
            idle_after: as in `Streamlet.event_time`.
            max_ahead: a batch with a time that is further in the future is refused; None accepts any time.

        Raises:
            UsageError: when a duration is wrong.
        """
        operator = AssignEventTime(
            ColumnNamed(column) if isinstance(column, str) else called(column, "event_time"),
            micros(lag, "event_time: lag", zero=True),
            None if idle_after is None else micros(idle_after, "event_time: idle_after"),
            None if max_ahead is None else micros(max_ahead, "event_time: max_ahead"),
            columns=True,
        )
        return ColumnStreamlet(self._add(operator, columns=True))

    def union(self, other: ColumnStreamlet) -> ColumnStreamlet:
        """Join the batches of both streams in one; the order between them is not defined."""
        return ColumnStreamlet(self._add(Union(), other, columns=True))

    def repartition(self, num_partitions: int) -> ColumnStreamlet:
        """Continue in another number of tasks, which get whole batches in turn.

        Raises:
            TopologyError: when the number is not an integer of at least 1.
        """
        return ColumnStreamlet(self._add(Repartition(None), columns=True)).set_num_partitions(num_partitions)

    def count_by_key_and_window(
        self, key: str | Sequence[str], window: SlidingWindow
    ) -> WindowedColumns[KeyedWindow[Any], int]:
        """Count the rows of each key and window of event time.

        Args:
            key: the name of a column; or of several, whose values together, as a tuple, are the key.
            window: `tumbling_window` or `sliding_window`.

        Returns:
            ``(KeyedWindow, count)`` when a window closes.
        """
        return WindowedColumns(self._grouped(key, window, ColumnFold((row_count(),)), "countbykeyandwindow"))

    def aggregate_by_key_and_window(
        self, key: str | Sequence[str], window: SlidingWindow, **aggregates: ColumnAggregate
    ) -> WindowedColumns[KeyedWindow[Any], dict[str, Any]]:
        """Aggregate the rows of each key and window of event time.

        Args:
            key: as in `count_by_key_and_window`.
            window: `tumbling_window` or `sliding_window`.
            aggregates: what to compute, by its name in the result: ``bids=row_count(), total=sum_of("price")``.

        Returns:
            ``(KeyedWindow, dict of results)`` when a window closes.
        """
        kind = "aggregatebykeyandwindow"
        return WindowedColumns(self._grouped(key, window, _fold(aggregates, kind), kind))

    def aggregate_by_window(
        self, window: SlidingWindow, **aggregates: ColumnAggregate
    ) -> WindowedColumns[Window, dict[str, Any]]:
        """Aggregate all rows of each window of event time; accumulators of the batches meet in one task.

        Returns:
            ``(Window, dict of results)`` when a window closes; a window without rows has no result.
        """
        draft = self._grouped((), window, _fold(aggregates, "aggregatebywindow"), "aggregatebywindow")
        draft.partitions = 1
        return WindowedColumns(draft)

    def rows(self) -> Streamlet[dict[str, Any]]:
        """Continue with records: each row as a dict of its values by column."""
        return Streamlet(self._add(ColumnStep(SplitRows(), "rows")))

    def log(self) -> None:
        """Print each row to the log of its task."""
        self.rows().log()

    def consume(self, function: Callable[[pa.RecordBatch], object]) -> None:
        """Call a function with each batch, for its effect."""
        self._add(Consume(called(function, "consume")))

    def to_sink(self, sink: Sink[pa.RecordBatch]) -> None:
        """Write each batch to a sink.

        Raises:
            TopologyError: when `sink` is not a `Sink`.
        """
        if not is_a(sink, Sink):
            msg = f"to_sink({sink!r:.60}): not a Sink; for a function use consume"
            raise TopologyError(msg)
        self._add(Write(sink))

    def _stepped(self, step: Callable[..., Any], kind: str) -> ColumnStreamlet:
        return ColumnStreamlet(self._add(ColumnStep(step, kind), columns=True))

    def _grouped(self, key: str | Sequence[str], window: object, fold: ColumnFold, kind: str) -> Draft:
        if not isinstance(window, SlidingWindow):
            msg = f"{kind} of columns: {window!r:.60} is not a window for it; give tumbling_window or sliding_window"
            raise TopologyError(msg)
        if window.clock:
            msg = f"{kind} of columns: windows by the clock have no columns; call rows(), or leave out by_clock()"
            raise TopologyError(msg)
        whole = key == ()
        keys = () if whole else _names((key,) if isinstance(key, str) else tuple(key), kind)
        return self._add(Windowed(WindowFold(window, fold, not whole), window, kind, whole, keys))


class WindowedColumns(Streamlet[tuple[P, R]], Generic[P, R]):
    """The results of windows of columns, as pairs of `KeyedWindow` or `Window` and result."""

    def early(self, every: Duration) -> Streamlet[WindowResult[P, R]]:
        """Return the results of windows so far, as `WindowedStreamlet.early`."""
        return Streamlet(early_results(self._draft, every))

    @property
    def late(self) -> ColumnStreamlet:
        """The rows that missed at least one of their windows, because it had closed before them.

        They are counted in the metric ``late`` of the task, whether this stream is read or not.
        """
        late = Draft(self._draft.builder, Pass(), (Input(self._draft.number, LATE),), columns=True, word="late")
        return ColumnStreamlet(self._draft.builder.add(late))


def gathered(add: Callable[..., Draft], schema: object, rows: object) -> ColumnStreamlet:
    """The columns of `Streamlet.to_columns`, whose operator `add` adds."""
    try:
        made = pa.schema(schema)
    except (TypeError, AttributeError, ValueError) as error:
        msg = f"to_columns: {schema!r:.200} is neither a pyarrow.Schema nor a mapping of names to Arrow types: {error}"
        raise TopologyError(msg) from error
    if not made.names or len(set(made.names)) != len(made.names):
        msg = f"to_columns: the schema has no field, or one name twice: {', '.join(made.names)}"
        raise TopologyError(msg)
    if type(rows) is not int or not 0 < rows <= _MOST_ROWS:
        msg = f"to_columns: rows={rows!r} is not an integer from 1 to {_MOST_ROWS}"
        raise TopologyError(msg)
    return ColumnStreamlet(add(Gather(made, rows), columns=True))


def _names(given: Sequence[object], method: str) -> tuple[str, ...]:
    names = tuple([each for each in given if isinstance(each, str) and each])
    if len(names) != len(given) or not names or len(set(names)) != len(names):
        msg = f"{method}: {tuple(given)!r:.60} are not the names of columns, each once, and at least one"
        raise TopologyError(msg)
    return names


def _fold(aggregates: Mapping[str, object], method: str) -> ColumnFold:
    found = tuple([each for each in aggregates.values() if isinstance(each, ColumnAggregate)])
    if not found or len(found) != len(aggregates):
        msg = f"{method}: give aggregates by name, as in total=sum_of('price'); got {dict(aggregates)!r:.100}"
        raise TopologyError(msg)
    return ColumnFold(found, tuple(aggregates))
