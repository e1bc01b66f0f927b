"""What an author gives to a method of a stream of columns becomes an operator, or an error that says what is wrong."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from heron.author_text import short_text
from heron.errors import TopologyError
from heron_streamlet.api.checked_operators import called, event_time
from heron_streamlet.arrow.aggregates import ColumnAggregate, ColumnFold, row_count
from heron_streamlet.arrow.batches import as_schema
from heron_streamlet.arrow.column_sources import MOST_ROWS, ColumnSource
from heron_streamlet.arrow.steps import ColumnNamed, FilterRows, MapBatch, Select, SplitRows
from heron_streamlet.connectors.sources import Generator, Source, as_source
from heron_streamlet.plan.operators import AssignEventTime, ColumnStep, Gather, Read, Windowed
from heron_streamlet.windowing.keyed_operators import WindowFold
from heron_streamlet.windowing.window import Duration, SlidingWindow

__all__ = ["ColumnOperators"]


class ColumnOperators:
    """The operators on columns, in one object: `streamlet` loads them only for pipelines that have columns."""

    def read(self, source: Source[Any] | Generator[Any] | Callable[[], Any]) -> Read:
        """The operator of `Builder.new_columns`.

        Raises:
            TopologyError: when `source` is no source.
        """
        return Read(ColumnSource(as_source(source)))

    def gather(self, schema: object, rows: object) -> Gather:
        """The operator of `Streamlet.to_columns`.

        Raises:
            TopologyError: when the schema is none, or `rows` is out of its range.
        """
        made = as_schema(schema, "to_columns")
        if type(rows) is not int or not 0 < rows <= MOST_ROWS:
            msg = f"to_columns: rows={short_text(rows, 60)} is not an integer from 1 to {MOST_ROWS}"
            raise TopologyError(msg)
        return Gather(made, rows)

    def map(self, function: object) -> ColumnStep:
        """The operator of `ColumnStreamlet.map_columns`."""
        return ColumnStep(MapBatch(called(function, "map_columns")), "mapcolumns")

    def filter(self, function: object) -> ColumnStep:
        """The operator of `ColumnStreamlet.filter_columns`."""
        return ColumnStep(FilterRows(called(function, "filter_columns")), "filtercolumns")

    def select(self, names: Sequence[object]) -> ColumnStep:
        """The operator of `ColumnStreamlet.select`.

        Raises:
            TopologyError: when no name is given, or one is not a string.
        """
        return ColumnStep(Select(_names(names, "select")), "select")

    def split(self) -> ColumnStep:
        """The operator of `ColumnStreamlet.rows`."""
        return ColumnStep(SplitRows(), "rows")

    def event_time(
        self, column: object, lag: Duration, idle_after: Duration | None, max_ahead: Duration | None
    ) -> AssignEventTime:
        """The operator of `ColumnStreamlet.event_time`.

        Raises:
            UsageError: when a duration is wrong.
        """
        times = ColumnNamed(column) if isinstance(column, str) else called(column, "event_time")
        return event_time(times, lag, idle_after, max_ahead, columns=True)

    def count(self, key: str | Sequence[str], window: object, kind: str) -> Windowed:
        """Counts rows by key and window.

        Raises:
            TopologyError: when the key or the window is wrong.
        """
        return _grouped(key, window, ColumnFold((row_count(),)), kind)

    def aggregate(
        self, key: str | Sequence[str], window: object, aggregates: Mapping[str, object], kind: str
    ) -> Windowed:
        """Aggregates rows by key and window; an empty key is that of all rows.

        Raises:
            TopologyError: when the key, the window or an aggregate is wrong.
        """
        found = tuple([each for each in aggregates.values() if isinstance(each, ColumnAggregate)])
        if not found or len(found) != len(aggregates):
            msg = (
                f"{kind}: give aggregates by name, as in total=sum_of('price'); got {short_text(dict(aggregates), 100)}"
            )
            raise TopologyError(msg)
        return _grouped(key, window, ColumnFold(found, tuple(aggregates)), kind)


def _grouped(key: str | Sequence[str], window: object, fold: ColumnFold, kind: str) -> Windowed:
    if not isinstance(window, SlidingWindow):
        msg = (
            f"{kind} of columns: {short_text(window, 60)} is not a window for it; give tumbling_window or "
            "sliding_window"
        )
        raise TopologyError(msg)
    if window.clock:
        msg = f"{kind} of columns: windows by the clock have no columns; call rows(), or leave out by_clock()"
        raise TopologyError(msg)
    whole = key == ()
    keys = () if whole else _names((key,) if isinstance(key, str) else tuple(key), kind)
    return Windowed(WindowFold(window, fold, not whole), window, kind, whole, keys)


def _names(given: Sequence[object], method: str) -> tuple[str, ...]:
    names = tuple([each for each in given if isinstance(each, str) and each])
    if len(names) != len(given) or not names or len(set(names)) != len(names):
        msg = f"{method}: {short_text(tuple(given), 60)} are not the names of columns, each once, and at least one"
        raise TopologyError(msg)
    return names
