"""Streamlets: streams that authors transform. Each method adds one operator to the pipeline.

Streams of records and streams of columns become each other, so both are here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast, overload

from heron.api.names import is_a
from heron.author_text import short_text
from heron.errors import TopologyError
from heron_streamlet.api.checked_operators import DAY_S, called, checked_conditions, early, event_time, joined, windowed
from heron_streamlet.api.stream import Stream
from heron_streamlet.connectors.transformer import Transformer
from heron_streamlet.plan import operators
from heron_streamlet.plan.graph import EARLY, LATE
from heron_streamlet.plan.operators import Keyed, Operator, Windowed
from heron_streamlet.views.view import View, ViewTarget
from heron_streamlet.views.view_folds import LiveFold
from heron_streamlet.windowing.fold import Aggregate, Aggregated, Count, Fold, Reduce
from heron_streamlet.windowing.keyed_operators import Distinct, MapWithState, RunningFold
from heron_streamlet.windowing.window import (
    CountWindow,
    Duration,
    KeyedWindow,
    SessionWindow,
    SlidingWindow,
    Window,
    WindowResult,
)

if TYPE_CHECKING:
    import pyarrow as pa

    from heron_streamlet.api.column_operators import ColumnOperators
    from heron_streamlet.arrow.aggregates import ColumnAggregate

__all__ = [
    "ColumnStreamlet",
    "KeyedStreamlet",
    "Streamlet",
    "WindowedColumns",
    "WindowedStreamlet",
    "column_operators",
]

_MOST_CLONES = 1_000  # each is an operator

T = TypeVar("T")
U = TypeVar("U")
K = TypeVar("K")
V = TypeVar("V")
W = TypeVar("W")
A = TypeVar("A")
R = TypeVar("R")
P = TypeVar("P")
L = TypeVar("L")


class Streamlet(Stream[T]):
    """A stream of elements of type `T`. Elements must be picklable, and must not be changed after they were returned.

    Methods that need keys work on streams of pairs ``(key, value)``; `key_by` makes them. Keys are None, bool, int,
    float, Decimal, str, bytes, date, datetime, UUID, or tuples of these.
    """

    def map(self, function: Callable[[T], U]) -> Streamlet[U]:
        """Call a function for each element; its results are the new stream."""
        return Streamlet(self._add(operators.Map(called(function, "map"))))

    def flat_map(self, function: Callable[[T], Iterable[U]]) -> Streamlet[U]:
        """Call a function for each element; the elements of its results are the new stream."""
        return Streamlet(self._add(operators.FlatMap(called(function, "flat_map"))))

    def filter(self, function: Callable[[T], object]) -> Streamlet[T]:
        """Keep the elements for which the function returns a true value."""
        return Streamlet(self._add(operators.FilterBy(called(function, "filter"))))

    def transform(self, transformer: Transformer[T, U]) -> Streamlet[U]:
        """Transform elements by an object that each task sets up for itself.

        Raises:
            TopologyError: when `transformer` is not a `Transformer`.
        """
        if not is_a(transformer, Transformer):
            msg = f"transform({short_text(transformer, 60)}): not a Transformer; for a function use map or flat_map"
            raise TopologyError(msg)
        return Streamlet(self._add(operators.Transform(transformer)))

    def union(self, other: Streamlet[T]) -> Streamlet[T]:
        """Join the elements of both streams in one; the order between them is not defined."""
        return Streamlet(self._add(operators.Union(), other))

    def repartition(self, num_partitions: int, function: Callable[[T, int], int] | None = None) -> Streamlet[T]:
        """Continue in another number of tasks.

        Args:
            num_partitions: the number of tasks, at least 1.
            function: called with an element and the number of tasks; returns the task, from 0. None shuffles.

        Raises:
            TopologyError: when an argument is wrong.
        """
        operator = operators.Repartition(None if function is None else called(function, "repartition"))
        return Streamlet(self._add(operator)).set_num_partitions(num_partitions)

    def clone(self, num_clones: int) -> list[Streamlet[T]]:
        """Return streams with the elements of this one, so that each can be transformed in its own way.

        Raises:
            TopologyError: when the number is not an integer from 1 to 1,000.
        """
        if type(num_clones) is not int or not 1 <= num_clones <= _MOST_CLONES:
            msg = f"{short_text(num_clones, 60)} clones: not an integer from 1 to {_MOST_CLONES:,}"
            raise TopologyError(msg)
        return [Streamlet(self._add(operators.Pass())) for _ in range(num_clones)]

    def split(self, conditions: Mapping[str, Callable[[T], object]]) -> dict[str, Streamlet[T]]:
        """Return a stream for each condition, with the elements that meet it; an element may be in several or none."""
        return {name: self.filter(condition) for name, condition in checked_conditions(conditions).items()}

    def event_time(
        self,
        function: Callable[[T], datetime | float],
        *,
        lag: Duration = 0,
        idle_after: Duration | None = None,
        max_ahead: Duration | None = DAY_S,
    ) -> Streamlet[T]:
        """Say when each element happened. Windows downstream are then windows of event time.

        Args:
            function: returns a `datetime` with a time zone, or seconds since 1970-01-01T00:00:00Z; from 1684-07-28 to
                2255-06-05. An element with another time fails.
            lag: how much older than the newest element of its source partition an element may be without being late.
            idle_after: a source task without elements for this time does not hold windows back; None waits for it. If
                no source task has elements, event time goes on with the clock.
            max_ahead: an element whose time is further in the future is refused, as it would make all others late; None
                accepts any time.

        Raises:
            UsageError: when a duration is wrong.
        """
        operator = event_time(called(function, "event_time"), lag, idle_after, max_ahead)
        return Streamlet(self._add(operator))

    @overload
    def key_by(self, key: Callable[[T], K]) -> KeyedStreamlet[K, T]: ...
    @overload
    def key_by(self, key: Callable[[T], K], value: Callable[[T], V]) -> KeyedStreamlet[K, V]: ...
    def key_by(self, key: Callable[[T], Any], value: Callable[[T], Any] | None = None) -> KeyedStreamlet[Any, Any]:
        """Make pairs of a key and a value; without `value`, the element is the value."""
        return KeyedStreamlet(self._add(operators.KeyBy(called(key, "key_by"), value and called(value, "key_by"))))

    def to_columns(self, schema: Any, rows: int = 4096) -> ColumnStreamlet:  # noqa: ANN401  # pyarrow has no types
        """Continue with columns: record batches of elements.

        Elements are mappings with the names of the schema, of which a missing one is null, or sequences of values in
        its order. A batch also ends before a watermark, a checkpoint and the end. In topologies that are at least once
        without checkpoints, each element is a batch.

        Args:
            schema: a `pyarrow.Schema`, or a mapping of names to Arrow types.
            rows: the number of elements in a batch, at most.

        Raises:
            TopologyError: when the schema is none, or `rows` is not an integer from 1 to 1,048,576.
            UsageError: when pyarrow is not installed.
        """
        return ColumnStreamlet(self._add(column_operators().gather(schema, rows), columns=True))

    def reduce_by_key(self: Streamlet[tuple[K, V]], function: Callable[[V, V], V]) -> KeyedStreamlet[K, V]:
        """Combine the values of each key; each pair gives the result so far."""
        return KeyedStreamlet(self._add(Keyed(RunningFold(Reduce(called(function, "reduce_by_key"))), "reducebykey")))

    def count_by_key(self: Streamlet[tuple[K, Any]]) -> KeyedStreamlet[K, int]:
        """Count the pairs of each key; each pair gives the number so far."""
        return KeyedStreamlet(self._add(Keyed(RunningFold(Count()), "countbykey")))

    def map_with_state(
        self: Streamlet[tuple[K, V]], initial: Callable[[], U], function: Callable[[U, V], tuple[U, R]]
    ) -> KeyedStreamlet[K, R]:
        """Transform the values of each key with a state of the key.

        Args:
            initial: returns the state of a new key.
            function: called with state and value; returns the new state and the result.
        """
        operator = MapWithState(called(function, "map_with_state"), called(initial, "map_with_state"))
        return KeyedStreamlet(self._add(Keyed(operator, "mapwithstate")))

    def distinct(self) -> Streamlet[T]:
        """Keep the first of equal elements, which must be of types that can be keys. All elements are remembered."""
        return Streamlet(self._add(Keyed(Distinct(), "distinct")))

    @overload
    def reduce_by_key_and_window(
        self: Streamlet[tuple[K, V]], window: CountWindow, function: Callable[[V, V], V]
    ) -> KeyedStreamlet[K, V]: ...
    @overload
    def reduce_by_key_and_window(
        self: Streamlet[tuple[K, V]], window: SlidingWindow | SessionWindow, function: Callable[[V, V], V]
    ) -> WindowedStreamlet[KeyedWindow[K], V, tuple[K, V]]: ...
    def reduce_by_key_and_window(self, window: Any, function: Callable[[Any, Any], Any]) -> Any:
        """Combine the values of each key and window.

        Args:
            window: windows of time or count.
            function: combines two values; must be associative, and for windows of time commutative. If it raises an
                exception, its window of this key has no result, and is counted as failed.

        Returns:
            ``(KeyedWindow, result)`` when a window of time closes; ``(key, result)`` when a window of count is full.
        """
        return self._windowed(window, Reduce(called(function, "reduce_by_key_and_window")), "reducebykeyandwindow")

    def count_by_key_and_window(
        self: Streamlet[tuple[K, V]], window: SlidingWindow | SessionWindow
    ) -> WindowedStreamlet[KeyedWindow[K], int, tuple[K, V]]:
        """Count the pairs of each key and window of time."""
        return self._windowed(window, Count(), "countbykeyandwindow")

    def aggregate_by_key_and_window(
        self: Streamlet[tuple[K, V]], window: SlidingWindow | SessionWindow, aggregate: Aggregate[V, A, R]
    ) -> WindowedStreamlet[KeyedWindow[K], R, tuple[K, V]]:
        """Aggregate the values of each key and window of time.

        Raises:
            TopologyError: when `aggregate` is not an `Aggregate`.
        """
        if not is_a(aggregate, Aggregate):
            msg = (
                f"aggregate_by_key_and_window: {short_text(aggregate, 60)} is not an Aggregate; for a function "
                "use reduce"
            )
            raise TopologyError(msg)
        return self._windowed(window, Aggregated(aggregate), "aggregatebykeyandwindow")

    def reduce_by_window(
        self, window: SlidingWindow | SessionWindow, function: Callable[[T, T], T]
    ) -> WindowedStreamlet[Window, T, T]:
        """Combine all elements of each window of time, in one task.

        Returns:
            ``(Window, result)`` when a window closes; a window without elements has no result.
        """
        return self._windowed(window, Reduce(called(function, "reduce_by_window")), "reducebywindow", whole=True)

    def join(
        self: Streamlet[tuple[K, V]],
        other: Streamlet[tuple[K, W]],
        window: SlidingWindow,
        function: Callable[[V, W], R],
    ) -> WindowedStreamlet[KeyedWindow[K], R, tuple[K, Any]]:
        """Join the pairs of two streams that have the same key and window: each value with each.

        Returns:
            ``(KeyedWindow, function(value, other value))`` when a window closes.
        """
        return WindowedStreamlet(self._add(joined(window, function), other))

    def outer_left_join(
        self: Streamlet[tuple[K, V]],
        other: Streamlet[tuple[K, W]],
        window: SlidingWindow,
        function: Callable[[V, W | None], R],
    ) -> WindowedStreamlet[KeyedWindow[K], R, tuple[K, Any]]:
        """Join as `join`; a value of this stream without a partner is joined with None."""
        return WindowedStreamlet(self._add(joined(window, function, left_outer=True), other))

    def outer_right_join(
        self: Streamlet[tuple[K, V]],
        other: Streamlet[tuple[K, W]],
        window: SlidingWindow,
        function: Callable[[V | None, W], R],
    ) -> WindowedStreamlet[KeyedWindow[K], R, tuple[K, Any]]:
        """Join as `join`; a value of the other stream without a partner is joined with None."""
        return WindowedStreamlet(self._add(joined(window, function, right_outer=True), other))

    def outer_join(
        self: Streamlet[tuple[K, V]],
        other: Streamlet[tuple[K, W]],
        window: SlidingWindow,
        function: Callable[[V | None, W | None], R],
    ) -> WindowedStreamlet[KeyedWindow[K], R, tuple[K, Any]]:
        """Join as `join`; a value of either stream without a partner is joined with None."""
        return WindowedStreamlet(self._add(joined(window, function, left_outer=True, right_outer=True), other))

    def log(self) -> None:
        """Print each element to the log of its task."""
        self._add(operators.Log())

    def to_view(self: Streamlet[tuple[K, V]], view: View[V, Any]) -> None:
        """Aggregate the values of each key into a view, by event time; `heron_streamlet.views` explains views.

        Raises:
            TopologyError: when `view` is not a `View`.
        """
        if not is_a(view, View):
            msg = f"to_view({short_text(view, 60)}): not a View"
            raise TopologyError(msg)
        window = view.window()
        folded = self._add(Windowed(LiveFold(window, Aggregated(view.monoid)), window, "view"))
        WindowedStreamlet(folded)._add(operators.Write(ViewTarget(view)))

    def _windowed(
        self, window: object, fold: Fold, kind: str, *, whole: bool = False
    ) -> WindowedStreamlet[Any, Any, Any]:
        operator = windowed(window, fold, kind, whole=whole)
        made: type[Streamlet[Any]] = KeyedStreamlet if isinstance(operator, Keyed) else WindowedStreamlet
        return cast("WindowedStreamlet[Any, Any, Any]", made(self._add(operator, partitions=1 if whole else None)))


class KeyedStreamlet(Streamlet[tuple[K, V]], Generic[K, V]):
    """A stream of pairs of a key and a value."""

    def map_values(self, function: Callable[[V], U]) -> KeyedStreamlet[K, U]:
        """Call a function for each value, and keep the keys."""
        valued = called(function, "map_values")
        return KeyedStreamlet(self._add(operators.Map(lambda pair: (pair[0], valued(pair[1])))))


class WindowedStreamlet(Streamlet[tuple[P, R]], Generic[P, R, L]):
    """The results of windows, as pairs of `KeyedWindow` or `Window` and result."""

    def early(self, every: Duration) -> Streamlet[WindowResult[P, R]]:
        """Return the results of windows so far: early ones while a window is open, and at last the final one.

        This stream itself stays as it is. Early results are provisional: how many there are, and what they contain,
        depends on time. After a restore, open windows give theirs again. The results of a window leave in order.

        Args:
            every: the time between two early results of a window, by the clock, from 10 ms to the time that a window is
                open. A window that has not changed since its last early result gives none. The engine spark-streaming
                gives them with each micro-batch, spark-batch none.

        Raises:
            UsageError: when `every` is not a duration.
        """
        return Streamlet(self._read(EARLY, early(every), operators.Early.word))

    @property
    def late(self) -> Streamlet[L]:
        """The elements that missed at least one of their windows, because it had closed before them.

        They are counted in the metric ``late`` of the task, whether this stream is read or not.
        """
        # An operator of its own: late elements leave several stages, each in the same form.
        return Streamlet(self._read(LATE, operators.Pass(), "late"))


class ColumnStreamlet(Stream["pa.RecordBatch"]):
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
        return self._then(column_operators().map(function))

    def filter_columns(self, function: Callable[[pa.RecordBatch], object]) -> ColumnStreamlet:
        """Keep the rows for which the function's array has true; null is not true.

        Args:
            function: called with a batch; returns an array of true or false, one for each row.
        """
        return self._then(column_operators().filter(function))

    def select(self, *names: str) -> ColumnStreamlet:
        """Keep these columns, in this order.

        Raises:
            TopologyError: when no name is given, or one is not a string.
        """
        return self._then(column_operators().select(names))

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
        return self._then(column_operators().event_time(column, lag, idle_after, max_ahead))

    def union(self, other: ColumnStreamlet) -> ColumnStreamlet:
        """Join the batches of both streams in one; the order between them is not defined."""
        return ColumnStreamlet(self._add(operators.Union(), other, columns=True))

    def repartition(self, num_partitions: int) -> ColumnStreamlet:
        """Continue in another number of tasks, which get whole batches in turn.

        Raises:
            TopologyError: when the number is not an integer of at least 1.
        """
        return self._then(operators.Repartition(None)).set_num_partitions(num_partitions)

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
        return WindowedColumns(self._add(column_operators().count(key, window, "countbykeyandwindow")))

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
        operator = column_operators().aggregate(key, window, aggregates, "aggregatebykeyandwindow")
        return WindowedColumns(self._add(operator))

    def aggregate_by_window(
        self, window: SlidingWindow, **aggregates: ColumnAggregate
    ) -> WindowedColumns[Window, dict[str, Any]]:
        """Aggregate all rows of each window of event time; accumulators of the batches meet in one task.

        Returns:
            ``(Window, dict of results)`` when a window closes; a window without rows has no result.
        """
        operator = column_operators().aggregate((), window, aggregates, "aggregatebywindow")
        return WindowedColumns(self._add(operator, partitions=1))

    def rows(self) -> Streamlet[dict[str, Any]]:
        """Continue with records: each row as a dict of its values by column."""
        return Streamlet(self._add(column_operators().split()))

    def log(self) -> None:
        """Print each row to the log of its task."""
        self.rows().log()

    def _then(self, operator: Operator) -> ColumnStreamlet:
        return ColumnStreamlet(self._add(operator, columns=True))


class WindowedColumns(Streamlet[tuple[P, R]], Generic[P, R]):
    """The results of windows of columns, as pairs of `KeyedWindow` or `Window` and result."""

    def early(self, every: Duration) -> Streamlet[WindowResult[P, R]]:
        """Return the results of windows so far, as `WindowedStreamlet.early`."""
        return Streamlet(self._read(EARLY, early(every), operators.Early.word))

    @property
    def late(self) -> ColumnStreamlet:
        """The rows that missed at least one of their windows, because it had closed before them.

        They are counted in the metric ``late`` of the task, whether this stream is read or not.
        """
        return ColumnStreamlet(self._read(LATE, operators.Pass(), "late", columns=True))


def column_operators() -> ColumnOperators:
    """The operators on columns.

    Raises:
        UsageError: when pyarrow is not installed.
    """
    from heron_streamlet.api.column_operators import ColumnOperators  # noqa: PLC0415  # pyarrow is optional

    return ColumnOperators()
