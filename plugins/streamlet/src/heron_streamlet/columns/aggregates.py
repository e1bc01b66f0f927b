"""What windows of columns compute: Arrow's aggregates of the rows of a batch, which are merged between batches."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from heron.errors import UsageError
from heron_streamlet.columns.batches import column_of
from heron_streamlet.columns.times import Times
from heron_streamlet.fold import Fold

__all__ = ["ColumnAggregate", "ColumnFold", "max_of", "mean_of", "min_of", "row_count", "sum_of"]

_INT64_MAX = 2**63 - 1


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
    """Merges accumulators of groups of rows, which `groups` makes: tuples with a value for each of Arrow's aggregates.

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

    def groups(
        self, batch: pa.RecordBatch, keys: Sequence[str], starts: Times
    ) -> Iterator[tuple[Any, int, tuple[Any, ...]]]:
        """The keys and starts in a batch, each once, with the accumulator of its rows.

        Without `keys` the key is None; the key of one column is its value, that of several is a tuple.
        """
        by = {f"k{number}": column_of(batch, name) for number, name in enumerate(keys)}
        # One start is usual, and a key less to group by.
        one = starts[0] == starts[-1] and bool((starts == starts[0]).all())
        if not one or not by:
            by["start"] = pa.array(starts)
        values = {name: column_of(batch, name) for name in {each.column for each in self.aggregates} - {""}}
        wide = {each.column for each in self.aggregates if "sum" in each.functions and _overflows(values[each.column])}
        values |= {name: values[name].cast(pa.decimal128(38)) for name in wide}
        wanted = [(each.column, function) for each in self.aggregates for function in each.functions]
        table = pa.table({**by, **{f"v{name}": column for name, column in values.items()}})
        grouped = table.group_by(list(by), use_threads=False).aggregate(
            [(f"v{column}" if column else [], function) for column, function in wanted]
        )
        columns = dict(zip(grouped.column_names, grouped.columns, strict=True))
        found = [
            _values(columns[f"v{column}_{function}" if column else function], integers=column in wide)
            for column, function in wanted
        ]
        own = [_values(columns[f"k{number}"]) for number in range(len(keys))]
        made = own[0] if len(own) == 1 else list(zip(*own, strict=True)) if own else [None] * grouped.num_rows
        at = [int(starts[0])] * grouped.num_rows if "start" not in by else _values(columns["start"])
        return zip(made, at, zip(*found, strict=True), strict=True)

    @property
    def _parts(self) -> list[str]:
        return [name for each in self.aggregates for name in each.functions]


def _overflows(column: pa.Array) -> bool:
    """Whether a sum in 64 bits could overflow: Arrow's wraps around."""
    if not pa.types.is_integer(column.type):
        return False
    extremes = pc.min_max(column).as_py()
    largest = max(abs(extremes["min"] or 0), abs(extremes["max"] or 0))
    return bool(largest * len(column) > _INT64_MAX)


def _values(column: pa.ChunkedArray, *, integers: bool = False) -> list[Any]:
    """The values; with `integers` decimals become integers."""
    values: list[Any] = column.to_pylist()
    return [None if each is None else int(each) for each in values] if integers else values


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
    msg = f"{function}({column!r:.60}): give the name of a column"
    raise UsageError(msg)
