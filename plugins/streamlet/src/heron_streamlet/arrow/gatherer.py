"""Gathers records in batches, for operators on columns behind a source of records."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from heron.author_text import class_name
from heron.errors import UserCodeError
from heron_streamlet.failures import OperatorError, Step, in_one

__all__ = ["Gatherer"]

_UNFIT = (pa.ArrowException, TypeError, ValueError, OverflowError)
"""What Arrow raises for a value that does not fit its type."""

Row = tuple[Any, ...]


class Gatherer:
    """Records that wait for their batch. `follow(batch, times, bounds)` gets it when it is full, and at each flush.

    `operator` names the operator in errors.
    """

    def __init__(self, operator: Step, schema: pa.Schema, rows: int, follow: Callable[[Any, Any, Any], object]) -> None:
        self._operator = operator
        self._schema = schema
        self._limit = rows
        self._follow = follow
        self._rows: list[Row] = []
        self._times: list[tuple[int, int]] = []

    def add(self, record: object, time_us: int | None, bound_us: int | None) -> None:
        """Takes a record: a mapping with the names of the schema, or a sequence of values in its order.

        Raises:
            UserCodeError: when the record is neither.
            OperatorError: when the batch is full and some of its records fail: the others go on.
        """
        self._rows.append(self._row(record))
        if time_us is not None and bound_us is not None:
            self._times.append((time_us, bound_us))
        if len(self._rows) >= self._limit and (failed := self.flush()):
            raise in_one(failed)

    def flush(self) -> list[OperatorError]:
        """Gives the records that wait; returns an error for each that does not fit the schema, and of operators behind.

        The others go on.
        """
        rows, times = self._rows, self._times
        self._rows, self._times = [], []
        failed: list[OperatorError] = []
        try:
            batch = self._batch(rows)
        except _UNFIT:
            found = [self._unfit(row) for row in rows]
            failed = [error for error in found if error is not None]
            times = [time for time, error in zip(times, found, strict=False) if error is None]
            batch = self._batch([row for row, error in zip(rows, found, strict=True) if error is None])
        if batch.num_rows:
            own, bounds = np.array(times, np.int64).T if times else (None, None)
            try:
                self._follow(batch, own, bounds)
            except OperatorError as error:
                failed.append(error)
        return failed

    def _row(self, record: object) -> Row:
        if isinstance(record, Mapping):
            row = tuple([record.get(name) for name in self._schema.names])
            if record.keys() <= set(self._schema.names):
                return row
        elif isinstance(record, Sequence) and not isinstance(record, (str, bytes)) and len(record) == len(self._schema):
            return tuple(record)
        names = ", ".join(self._schema.names)
        msg = f"to_columns: a {class_name(record)} is no mapping of {names}, nor as many values in this order"
        raise UserCodeError(msg)

    def _batch(self, rows: Sequence[Row]) -> pa.RecordBatch:
        columns = zip(*rows, strict=True) if rows else [()] * len(self._schema)
        arrays = [pa.array(values, field.type) for values, field in zip(columns, self._schema, strict=True)]
        return pa.RecordBatch.from_arrays(arrays, schema=self._schema)

    def _unfit(self, row: Row) -> OperatorError | None:
        for field, value in zip(self._schema, row, strict=True):
            try:
                pa.array([value], field.type)
            except _UNFIT:  # its text has the value
                unfit = f"to_columns: a {class_name(value)} does not fit the column {field.name!r} of type {field.type}"
                record = dict(zip(self._schema.names, row, strict=True))
                return OperatorError.of(self._operator, unfit, (record,))
        return None
