"""Which rows of a record batch go to which tasks: every grouping of rows, for columns.

A fields grouping encodes the key columns as dictionaries, and places each distinct key as the row path does.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from heron.author_text import class_name
from heron.errors import EmitError
from heron.instance.output.stream_routes import (
    MEMO_LIMIT,
    CheckedGrouping,
    KeyMemo,
    PartialKeyMemo,
    ShuffleSplitter,
    StreamRoutes,
)
from heron.planner.key_group import key_group
from heron.spi.column_serializer import ColumnSerializer

if TYPE_CHECKING:
    from pyarrow import RecordBatch

__all__ = ["ColumnPart", "ColumnRoutes", "Numbers"]

Numbers = NDArray[np.int64] | range
"""Numbers of rows in an emitted batch; a range costs nothing."""

_Tasks = NDArray[np.int64]

_LEAST_SLICE = 256  # rows: the shuffle grouping does not cut a small batch into slivers


@dataclass(frozen=True, slots=True)
class ColumnPart:
    """Rows that each of `tasks` receives; `numbers` are their places in the emitted batch."""

    tasks: tuple[int, ...]
    batch: RecordBatch
    numbers: Numbers

    def slice(self, start: int, end: int) -> ColumnPart:
        """These rows of the part."""
        return ColumnPart(self.tasks, self.batch.slice(start, end - start), self.numbers[start:end])


class ColumnRoutes:
    """Divides the batches of one stream under one plan."""

    def __init__(self, routes: StreamRoutes, serializer: ColumnSerializer) -> None:
        self._routes = routes
        self._serializer = serializer
        self._shuffles = [each for each in routes.splitters if isinstance(each, ShuffleSplitter)]
        self._keyed = [
            (edge.positions, _KeyTasks(edge.memo) if isinstance(edge.memo, KeyMemo) else edge.memo)
            for edge in routes.keyed
            if edge.picks is not None
        ]

    @property
    def calls_author(self) -> bool:
        """Whether a custom grouping divides the batches."""
        return bool(self._routes.choosers)

    def check_keys(self, batch: RecordBatch) -> None:
        """Checks by the types of a batch that its rows can be grouped as the plan wants.

        Raises:
            EmitError: when the type of a field cannot be part of a key.
        """
        for edge in self._routes.keyed:
            self._serializer.check_keys(batch, edge.positions)

    def parts(self, batch: RecordBatch, direct: int | None) -> Iterator[ColumnPart]:
        """The parts of a batch that have rows; `direct` is the task of a direct emit.

        Raises:
            EmitError: when a custom grouping chooses a task that is not its consumer's.
        """
        routes, rows = self._routes, batch.num_rows
        if not rows:
            return
        if routes.whole:
            yield ColumnPart(routes.whole, batch, range(rows))
        if direct is not None:
            yield ColumnPart((direct,), batch, range(rows))
        for shuffle in self._shuffles:
            yield from _dealt(shuffle, batch)
        for positions, memo in self._keyed:
            keys, codes = self._serializer.distinct_keys(batch, positions)
            yield from self._by_task(batch, _placed(memo, keys, codes))
        for grouping, _ in routes.choosers:
            yield from self._chosen(batch, grouping)

    def _by_task(self, batch: RecordBatch, task_of_row: _Tasks) -> Iterator[ColumnPart]:
        """One part for each task, in ascending order of tasks; each keeps the order of the rows."""
        tasks = np.unique(task_of_row)
        if len(tasks) == 1:
            yield ColumnPart((int(tasks[0]),), batch, range(batch.num_rows))
            return
        for task in tasks.tolist():
            numbers = np.flatnonzero(task_of_row == task)
            yield ColumnPart((task,), self._serializer.take(batch, numbers), numbers)

    def _chosen(self, batch: RecordBatch, grouping: CheckedGrouping) -> Iterator[ColumnPart]:
        chosen = grouping.of_columns(batch)
        if chosen is not None:
            yield from self._by_task(batch, _task_of_row(chosen, batch.num_rows, grouping))
            return
        columns = self._serializer.to_columns(batch)
        numbers: dict[int, list[int]] = {}
        for number, values in enumerate(zip(*columns, strict=True)):
            for task in grouping(values):
                numbers.setdefault(task, []).append(number)
        for task, of_task in numbers.items():
            rows = np.array(of_task, dtype=np.int64)
            yield ColumnPart((task,), self._serializer.take(batch, rows), rows)


class _KeyTasks(dict[object, int]):
    """Key to its task; a missing key is computed and remembered."""

    def __init__(self, memo: KeyMemo) -> None:
        super().__init__()
        self._owners = memo.owners
        self._single = memo.single

    def __missing__(self, key: object) -> int:
        values: tuple[object, ...] = (key,) if self._single else key  # type: ignore[assignment]  # several fields: a tuple
        if len(self) >= MEMO_LIMIT:
            self.clear()
        task = self[key] = self._owners[key_group(values, len(self._owners))]
        return task


def _dealt(shuffle: ShuffleSplitter, batch: RecordBatch) -> Iterator[ColumnPart]:
    rows = batch.num_rows
    tasks = shuffle.deal(-(-rows // _LEAST_SLICE))
    for place, task in enumerate(tasks):
        start, end = rows * place // len(tasks), rows * (place + 1) // len(tasks)
        yield ColumnPart((task,), batch.slice(start, end - start), range(start, end))


def _placed(memo: _KeyTasks | PartialKeyMemo, keys: Sequence[object], codes: _Tasks) -> _Tasks:
    """The task of each row."""
    if isinstance(memo, PartialKeyMemo):
        return _balanced(memo, keys, codes)
    tasks: _Tasks = np.fromiter(map(memo.__getitem__, keys), np.int64, len(keys))[codes]
    return tasks


def _balanced(memo: PartialKeyMemo, keys: Sequence[object], codes: _Tasks) -> _Tasks:
    """Gives each key's rows to its two tasks such that they have sent equally many, as far as these rows allow."""
    order = np.argsort(codes, kind="stable")
    starts = np.searchsorted(codes[order], np.arange(len(keys) + 1))
    tasks = np.empty(len(codes), dtype=np.int64)
    for place, key in enumerate(keys):
        rows = order[starts[place] : starts[place + 1]]
        first, second, of_first = memo.divided(key, len(rows))
        tasks[rows[:of_first]], tasks[rows[of_first:]] = first, second
    return tasks


def _task_of_row(chosen: object, rows: int, grouping: CheckedGrouping) -> _Tasks:
    try:
        tasks = np.asarray(chosen)
        if tasks.dtype.kind not in "iu":
            raise TypeError(tasks.dtype.name)
        tasks = tasks.astype(np.int64, copy=False)
    except (TypeError, ValueError, OverflowError) as error:
        msg = (
            f"custom grouping {grouping.name}: choose_columns returned a {class_name(chosen)}, which is no array of "
            "task ids"
        )
        raise EmitError(msg) from error
    if tasks.shape != (rows,):
        msg = f"custom grouping {grouping.name}: choose_columns returned {tasks.shape} task ids for {rows} rows"
        raise EmitError(msg)
    grouping.check(np.unique(tasks).tolist())
    return tasks
