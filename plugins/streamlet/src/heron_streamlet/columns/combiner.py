"""Combines the rows of windows of columns, before they travel to the task of their key."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from heron.errors import HeronError
from heron_streamlet.columns.aggregates import START, ColumnFold
from heron_streamlet.failures import OperatorError, failed_at

__all__ = ["ColumnCombiner"]

_ROWS_AT_ONCE = 65_536
"""Rows that are grouped together: Arrow needs 0.3 ms to begin, whatever the number of rows."""

_GROUPS_AT_MOST = 262_144
"""Accumulators in memory, of one outlet; some 10 MB."""

Row = tuple[object, int, object]


class ColumnCombiner:
    """Rows and accumulators by key and window that have not left the task; `Combiner` does the same for records.

    Tables stay apart by schema, so that the types of an author's batches may change.

    Args:
        operator: what errors name.
        starts: the distances from the start of a row's last window to the starts of all its windows, in microseconds.
        sender: gives the function that takes rows ``(key, start, accumulator)`` now.
    """

    def __init__(
        self, operator: object, fold: ColumnFold, starts: range, sender: Callable[[], Callable[[Row], object]]
    ) -> None:
        self._operator = operator
        self._fold = fold
        self._starts = starts
        self._sender = sender
        self._rows: dict[tuple[pa.Schema, bool], list[pa.Table]] = {}
        self._groups: dict[pa.Schema, list[pa.Table]] = {}
        self._row_count = self._group_count = 0
        self._failed: list[OperatorError] = []

    def add(self, rows: pa.Table, *, spread: bool) -> None:
        """Adds rows, as `ColumnFold.rows` makes them. With `spread` their start is that of their last window, and they
        belong to all of their windows; otherwise they belong to the window that begins then.
        """
        self._rows.setdefault((rows.schema, spread), []).append(rows)
        self._row_count += rows.num_rows
        if self._row_count >= _ROWS_AT_ONCE:
            self._group()
            if self._group_count >= _GROUPS_AT_MOST:
                self._merge()
                if self._group_count >= _GROUPS_AT_MOST // 2:
                    self._failed += self._send()

    def flush(self) -> list[OperatorError]:
        """Sends all accumulators; returns what failed: groups that Arrow cannot make, and keys that are refused."""
        self._group()
        self._merge()
        failed, self._failed = [*self._failed, *self._send()], []
        return failed

    def _group(self) -> None:
        """Makes accumulators of the rows."""
        waiting, self._rows, self._row_count = self._rows, {}, 0
        for (_, spread), tables in waiting.items():
            try:
                grouped = self._fold.grouped(pa.concat_tables(tables))
            except pa.ArrowException as error:
                self._failed.append(failed_at(self._operator, error))
                continue
            for distance_us in self._starts if spread else (0,):
                self._hold(_earlier(grouped, distance_us))

    def _merge(self) -> None:
        """Leaves one accumulator for each key and window, in each schema."""
        waiting, self._groups, self._group_count = self._groups, {}, 0
        for tables in waiting.values():
            try:
                self._hold(tables[0] if len(tables) == 1 else self._fold.merged(pa.concat_tables(tables)))
            except pa.ArrowException as error:
                self._failed.append(failed_at(self._operator, error))

    def _hold(self, groups: pa.Table) -> None:
        self._groups.setdefault(groups.schema, []).append(groups)
        self._group_count += groups.num_rows

    def _send(self) -> list[OperatorError]:
        waiting, self._groups, self._group_count = self._groups, {}, 0
        send, rest = self._sender(), self._accumulators(waiting)
        failed: list[OperatorError] = []
        while True:
            try:
                for row in rest:
                    send(row)
            except HeronError as error:
                failed.append(failed_at(self._operator, error))
            else:
                return failed

    def _accumulators(self, waiting: dict[pa.Schema, list[pa.Table]]) -> Iterator[Row]:
        rows = (self._fold.accumulators(table) for tables in waiting.values() for table in tables)
        return iter([row for each in rows for row in each])


def _earlier(groups: pa.Table, distance_us: int) -> pa.Table:
    """The groups of the windows that begin so much earlier."""
    if not distance_us:
        return groups
    at = groups.schema.get_field_index(START)
    starts: Any = pc.subtract(groups.column(at), pa.scalar(distance_us, pa.int64()))
    return groups.set_column(at, groups.schema.field(at), starts)
