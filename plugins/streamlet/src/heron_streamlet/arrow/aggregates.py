"""What windows of columns compute: Arrow's aggregates of the rows of a batch, which are merged between batches."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from heron.author_text import short_text
from heron.errors import UsageError
from heron_streamlet.arrow.batches import column_of
from heron_streamlet.arrow.times import Times
from heron_streamlet.windowing.fold import Fold

__all__ = ["START", "ColumnAggregate", "ColumnFold", "key_starts", "max_of", "mean_of", "min_of", "row_count", "sum_of"]

START = "start"
"""The column of the starts of windows, in microseconds."""

_INT64_MAX = 2**63 - 1
_WIDE = pa.decimal256(38)  # sums of it have more digits; columns of authors are hardly ever so wide


@dataclass(frozen=True, slots=True)
class ColumnAggregate:
    """An aggregate of a column; nulls do not count, and the result of no values is None.

    Attributes:
        column: the name of the column; empty for whole rows.
        functions: the names of Arrow's aggregates whose values are the accumulator.
    """

    column: str
    functions: tuple[str, ...]

    def result(self, accumulator: Sequence[Any]) -> object:
        """The result of merged values: the only one, or a sum by its count."""
        if len(accumulator) == 1:
            only: object = accumulator[0]
            return only
        total, count = accumulator
        return total / count if count else None


def row_count() -> ColumnAggregate:
    """The number of rows."""
    return ColumnAggregate("", ("count_all",))


def sum_of(column: str) -> ColumnAggregate:
    """The sum of a column of numbers. Sums of integers are exact; the last digits of floats depend on the order."""
    return ColumnAggregate(_name(column, "sum_of"), ("sum",))


def min_of(column: str) -> ColumnAggregate:
    """The smallest value of a column. NaN does not count beside other values."""
    return ColumnAggregate(_name(column, "min_of"), ("min",))


def max_of(column: str) -> ColumnAggregate:
    """The largest value of a column. NaN does not count beside other values."""
    return ColumnAggregate(_name(column, "max_of"), ("max",))


def mean_of(column: str) -> ColumnAggregate:
    """The mean of a column of numbers."""
    return ColumnAggregate(_name(column, "mean_of"), ("sum", "count"))


@dataclass(frozen=True, slots=True)
class ColumnFold(Fold):
    """Merges accumulators of groups of rows: tuples with a value for each of Arrow's aggregates, or rows of tables.

    With `names`, results are dicts; without, the result of the only aggregate.
    """

    aggregates: tuple[ColumnAggregate, ...]
    names: tuple[str, ...] = ()

    def first(self, value: object) -> object:
        """`Fold.first`: the values are accumulators."""
        return value

    def add(self, accumulator: object, value: object) -> object:
        """`Fold.add`."""
        return self.merge(accumulator, value)

    def merge(self, left: Any, right: Any) -> object:  # noqa: ANN401  # of this class
        """`Fold.merge`."""
        return tuple([_MERGES[name](one, other) for name, one, other in zip(self._parts, left, right, strict=True)])

    def result(self, accumulator: Any) -> object:  # noqa: ANN401
        """`Fold.result`."""
        results, at = [], 0
        for each in self.aggregates:
            results.append(each.result(accumulator[at : at + len(each.functions)]))
            at += len(each.functions)
        return dict(zip(self.names, results, strict=True)) if self.names else results[0]

    def merger(self) -> Callable[[Any, Any], Any]:
        """`Fold.merger`."""
        merges = [_MERGES[name] for name in self._parts]
        if len(merges) == 1:
            merge = merges[0]
            return lambda left, right: (merge(left[0], right[0]),)
        return lambda left, right: tuple([merge(*pair) for merge, *pair in zip(merges, left, right, strict=True)])

    def result_of(self) -> Callable[[Any], Any]:
        """`Fold.result_of`."""
        return self.result if self.names or len(self._parts) > 1 else operator.itemgetter(0)

    def rows(self, batch: pa.RecordBatch, keys: Sequence[str], starts: Times) -> pa.Table:
        """What the aggregates need of a batch: the columns of the key, the start of each row's window, and values."""
        values = dict.fromkeys(each.column for each in self.aggregates if each.column)
        columns = self.places(batch, keys, starts)
        return pa.table({**columns, **{f"v{name}": column_of(batch, name) for name in values}})

    def places(self, batch: pa.RecordBatch, keys: Sequence[str], starts: Times) -> dict[str, Any]:
        """What says to which windows rows belong: the columns of the key, and the start of each row's window."""
        return {f"k{number}": column_of(batch, name) for number, name in enumerate(keys)} | {START: pa.array(starts)}

    def grouped(self, rows: pa.Table) -> pa.Table:
        """The accumulators of the keys and starts in `rows`: a column for each of Arrow's aggregates."""
        wanted = [(each.column, function) for each in self.aggregates for function in each.functions]
        functions = [(f"v{column}" if column else [], function) for column, function in wanted]
        summed = {f"v{each.column}" for each in self.aggregates if "sum" in each.functions}
        names = [f"v{column}_{function}" if column else function for column, function in wanted]
        return self._aggregated(_without_overflow(rows, summed), functions, names)

    def merged(self, groups: pa.Table) -> pa.Table:
        """The accumulators of several groups by key and start, merged."""
        functions = [(f"a{number}", _ARROW_MERGES[name]) for number, name in enumerate(self._parts)]
        summed = {column for column, function in functions if function == "sum"}
        names = [f"{column}_{function}" for column, function in functions]
        return self._aggregated(_without_overflow(groups, summed), functions, names)

    def accumulators(self, groups: pa.Table) -> Iterator[tuple[Any, int, tuple[Any, ...]]]:
        """Key, start and accumulator of each group. The key of one column is its value, that of several is a tuple."""
        found = [_values(groups[f"a{number}"]) for number in range(len(self._parts))]
        return zip(_keys(groups), _values(groups[START]), zip(*found, strict=True), strict=True)

    def _aggregated(self, table: pa.Table, functions: list[tuple[Any, str]], names: list[str]) -> pa.Table:
        """The table by key and start, with the results as ``a0``, ``a1`` and so on."""
        by = [name for name in table.column_names if name.startswith("k")]
        starts = pc.min_max(table[START])
        # One start is usual, and a key less to group by.
        one = by and starts["min"] == starts["max"]
        each_once = dict(zip(names, functions, strict=True))
        grouped = table.group_by(by if one else [*by, START], use_threads=False).aggregate(list(each_once.values()))
        start = pa.repeat(starts["min"], grouped.num_rows) if one else grouped[START]
        columns = {name: grouped[name] for name in by} | {START: start}
        return pa.table(columns | {f"a{number}": grouped[name] for number, name in enumerate(names)})

    @property
    def _parts(self) -> list[str]:
        return [name for each in self.aggregates for name in each.functions]


def key_starts(table: pa.Table) -> dict[tuple[Any, int], None]:
    """Each key with each start of its windows, of rows or groups, once."""
    return dict.fromkeys(zip(_keys(table), _values(table[START]), strict=True))


def _keys(table: pa.Table) -> Sequence[Any]:
    own = [_values(table[name]) for name in table.column_names if name.startswith("k")]
    return own[0] if len(own) == 1 else list(zip(*own, strict=True)) if own else [None] * table.num_rows


def _without_overflow(table: pa.Table, summed: Iterable[str]) -> pa.Table:
    """The table, with decimals for the integers whose sum could exceed 64 bits: Arrow's sum wraps around."""
    for name in summed:
        if _overflows(table[name]):
            at = table.schema.get_field_index(name)
            table = table.set_column(at, name, table[name].cast(_WIDE))
    return table


def _overflows(column: pa.ChunkedArray) -> bool:
    if not pa.types.is_integer(column.type):
        return False
    extremes = pc.min_max(column).as_py()
    largest = max(abs(extremes["min"] or 0), abs(extremes["max"] or 0))
    return bool(largest * len(column) > _INT64_MAX)


def _values(column: pa.ChunkedArray) -> list[Any]:
    """The values; wide decimals are sums of integers."""
    values: list[Any] = column.to_pylist()
    return [None if each is None else int(each) for each in values] if pa.types.is_decimal256(column.type) else values


def _sum(left: Any, right: Any) -> Any:  # noqa: ANN401  # numbers of one type, or None
    if left is None or right is None:
        return left if right is None else right
    return left + right


def _extreme(better: Callable[[Any, Any], bool]) -> Callable[[Any, Any], Any]:
    def merge(left: Any, right: Any) -> Any:  # noqa: ANN401
        if left is None or left != left:  # noqa: PLR0124  # NaN
            return left if right is None else right
        return right if right is not None and better(right, left) else left

    return merge


_ARROW_MERGES = {"count_all": "sum", "count": "sum", "sum": "sum", "min": "min", "max": "max"}
_MERGES: dict[str, Callable[[Any, Any], Any]] = {
    "count_all": operator.add,
    "count": operator.add,
    "sum": _sum,
    "min": _extreme(operator.lt),
    "max": _extreme(operator.gt),
}


def _name(column: object, function: str) -> str:
    if isinstance(column, str) and column:
        return column
    msg = f"{function}({short_text(column, 60)}): give the name of a column"
    raise UsageError(msg)
