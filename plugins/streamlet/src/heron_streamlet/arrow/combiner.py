"""Combines the rows of windows of columns, before they travel to the task of their key."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pyarrow as pa

from heron_streamlet.arrow.aggregates import ColumnFold
from heron_streamlet.failures import OperatorError, failed_at
from heron_streamlet.windowing.window_assignment import WindowRow, send_each

__all__ = ["ColumnCombiner"]

_ROWS_AT_ONCE = 65_536
"""Rows that are grouped together: Arrow needs 0.3 ms to begin, whatever the number of rows."""

_GROUPS_AT_MOST = 262_144
"""Accumulators in memory, of one outlet; some 10 MB."""


class ColumnCombiner:
    """Rows and accumulators by key and window that have not left the task; `Combiner` does the same for records.

    Tables stay apart by schema, so that the types of an author's batches may change.

    Args:
        operator: what errors name.
        starts: the distances from the start of a row's last window to the starts of all its windows, in microseconds.
        sender: gives the function that takes rows now.
    """

    def __init__(
        self, operator: object, fold: ColumnFold, starts: range, sender: Callable[[], Callable[[WindowRow], object]]
    ) -> None:
        self._operator = operator
        self._fold = fold
        self._starts = starts
        self._sender = sender
        self._rows: dict[tuple[pa.Schema, bool], list[pa.Table]] = {}
        self._groups: dict[tuple[pa.Schema, bool], list[pa.Table]] = {}
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
            self._hold(grouped, spread=spread)

    def _merge(self) -> None:
        """Leaves one accumulator for each key and start, in each schema."""
        waiting, self._groups, self._group_count = self._groups, {}, 0
        for (_, spread), tables in waiting.items():
            try:
                merged = tables[0] if len(tables) == 1 else self._fold.merged(pa.concat_tables(tables))
                self._hold(merged, spread=spread)
            except pa.ArrowException as error:
                self._failed.append(failed_at(self._operator, error))

    def _hold(self, groups: pa.Table, *, spread: bool) -> None:
        self._groups.setdefault((groups.schema, spread), []).append(groups)
        self._group_count += groups.num_rows

    def _send(self) -> list[OperatorError]:
        waiting, self._groups, self._group_count = self._groups, {}, 0
        return send_each(self._accumulators(waiting), self._sender(), self._operator)

    def _accumulators(self, waiting: dict[tuple[pa.Schema, bool], list[pa.Table]]) -> Iterator[WindowRow]:
        rows: list[WindowRow] = []
        for (_, spread), tables in waiting.items():
            earlier_us, windows = (self._starts[-1], len(self._starts)) if spread else (0, 1)
            for table in tables:
                rows += [
                    (key, start_us - earlier_us, windows, each)
                    for key, start_us, each in self._fold.accumulators(table)
                ]
        return iter(rows)
