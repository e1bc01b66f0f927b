"""Combines the rows of windows of columns, before they travel to the task of their key."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pyarrow as pa

from heron_streamlet.arrow.aggregates import ColumnFold, key_starts
from heron_streamlet.failures import OperatorError, failed_at
from heron_streamlet.windowing.failed_window import FailedWindow, failed_window
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
        self._refused: list[OperatorError] = []
        self._failed_rows: dict[tuple[object, int, int], FailedWindow] = {}

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
                    self._refused += self._send()

    def flush(self) -> list[OperatorError]:
        """Sends all accumulators and failed windows; returns an error for each key that is refused."""
        self._group()
        self._merge()
        refused, self._refused = [*self._refused, *self._send()], []
        return refused

    def fail(self, rows: pa.Table, error: Exception, *, spread: bool) -> None:
        """The windows of these rows have failed; `add` describes rows."""
        earlier_us, windows = self._earlier_us(spread=spread)
        failed = failed_window(error)
        try:
            places = key_starts(rows)
        except TypeError:  # values of such columns cannot be keys
            self._refused.append(failed_at(self._operator, error, rows))
            return
        for key, start_us in places:
            self._failed_rows[key, start_us - earlier_us, windows] = failed

    def _group(self) -> None:
        """Makes accumulators of the rows."""
        waiting, self._rows, self._row_count = self._rows, {}, 0
        for (_, spread), tables in waiting.items():
            rows = pa.concat_tables(tables)
            try:
                grouped = self._fold.grouped(rows)
            except pa.ArrowException as error:
                self.fail(rows, error, spread=spread)
            else:
                self._hold(grouped, spread=spread)

    def _merge(self) -> None:
        """Leaves one accumulator for each key and start, in each schema."""
        waiting, self._groups, self._group_count = self._groups, {}, 0
        for (_, spread), tables in waiting.items():
            groups = tables[0] if len(tables) == 1 else pa.concat_tables(tables)
            try:
                merged = groups if len(tables) == 1 else self._fold.merged(groups)
            except pa.ArrowException as error:
                self.fail(groups, error, spread=spread)
            else:
                self._hold(merged, spread=spread)

    def _hold(self, groups: pa.Table, *, spread: bool) -> None:
        self._groups.setdefault((groups.schema, spread), []).append(groups)
        self._group_count += groups.num_rows

    def _send(self) -> list[OperatorError]:
        waiting, self._groups, self._group_count = self._groups, {}, 0
        return send_each(self._accumulators(waiting), self._sender(), self._operator)

    def _accumulators(self, waiting: dict[tuple[pa.Schema, bool], list[pa.Table]]) -> Iterator[WindowRow]:
        rows: list[WindowRow] = []
        for (_, spread), tables in waiting.items():
            earlier_us, windows = self._earlier_us(spread=spread)
            for table in tables:
                rows += [
                    (key, start_us - earlier_us, windows, each)
                    for key, start_us, each in self._fold.accumulators(table)
                ]
        failed, self._failed_rows = self._failed_rows, {}
        rows += [(key, start_us, -windows, each) for (key, start_us, windows), each in failed.items()]
        return iter(rows)

    def _earlier_us(self, *, spread: bool) -> tuple[int, int]:
        """How much earlier than a row's start its first window begins, and the number of its windows."""
        return (self._starts[-1], len(self._starts)) if spread else (0, 1)
