"""Sources of columns: their elements are record batches."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from pathlib import Path
from typing import Any, Generic, TypeVar

import pyarrow as pa
from pyarrow import parquet

from heron.author_text import short_text
from heron.errors import UsageError, nearest
from heron_streamlet.arrow.batches import as_batch
from heron_streamlet.connectors.sources import GaugedReader, MeasuredReader, Reader, Source, matching_files
from heron_streamlet.connectors.transformer import StageContext

__all__ = [
    "MOST_ROWS",
    "ROWS",
    "BatchReader",
    "ColumnSource",
    "ParquetFiles",
    "ParquetReader",
    "check_rows",
    "chosen_columns",
]

Records = TypeVar("Records")

ROWS = 65_536
"""The number of rows in a batch that a source reads, at most."""

MOST_ROWS = 1 << 20
"""The largest limit that an author may give."""


class ParquetFiles(Source[pa.RecordBatch]):
    """The rows of Parquet files, in batches; each file is a partition.

    Args:
        pattern: a glob pattern such as ``logs/*.parquet``. The files that match when the pipeline starts are read.
        columns: the names of the columns to read; None for all.
        rows: the number of rows in a batch, at most; from 1 to 1,048,576.

    Raises:
        UsageError: when `rows` is out of its range.
    """

    word = "parquet"

    def __init__(self, pattern: str | Path, columns: Sequence[str] | None = None, *, rows: int = ROWS) -> None:
        check_rows(rows, "ParquetFiles")
        self.pattern = str(pattern)
        self.columns = None if columns is None else list(columns)
        self.rows = rows

    def partitions(self, tasks: int) -> Sequence[str]:  # one for each file
        """`Source.partitions`.

        Raises:
            UsageError: when no file matches, or a file has not all of the columns.
        """
        paths = matching_files(self.pattern, "ParquetFiles")
        for path in paths if self.columns is not None else ():
            names = parquet.read_schema(path).names
            if missing := sorted(set(self.columns or ()) - set(names)):
                msg = f"ParquetFiles({self.pattern!r}): {path} has no column {missing[0]!r}; it has {', '.join(names)}"
                raise UsageError(msg)
        return paths

    def open(self, partition: str, position: object, context: StageContext) -> Reader[pa.RecordBatch]:
        """`Source.open`."""
        return ParquetReader(parquet.ParquetFile(partition), self.columns, self.rows, position)


def check_rows(rows: object, owner: str) -> None:
    """Check the number of rows in a batch.

    Raises:
        UsageError: when it is not an integer from 1 to 1,048,576.
    """
    if type(rows) is not int or not 0 < rows <= MOST_ROWS:
        msg = f"{owner}: rows={short_text(rows, 60)} is not an integer from 1 to {MOST_ROWS}"
        raise UsageError(msg)


def chosen_columns(columns: Sequence[str] | None, known: Collection[str], owner: str) -> tuple[str, ...]:
    """Return the names of the columns to make, in their order. If `columns` is None, these are all known columns.

    Raises:
        UsageError: when a column does not exist, or comes twice.
    """
    names = tuple(known) if columns is None else tuple(columns)
    if isinstance(columns, str) or not 0 < len(names) == len(set(names)):
        msg = f"{owner}: columns={columns!r} is not a list of one or more different names"
        raise UsageError(msg)
    for name in names:
        if name not in known:
            msg = f"{owner}: no column {name!r}{nearest(name, known)}; known: {', '.join(known)}"
            raise UsageError(msg)
    return names


class ParquetReader:
    """Reads one batch at a time. The position is the row group, and the number of batches of it that were read.

    Args:
        file: an open file, which the reader closes.
    """

    def __init__(self, file: parquet.ParquetFile, columns: list[str] | None, rows: int, position: object) -> None:
        self._file = file
        self._columns = columns
        self._rows = rows
        self.position: tuple[int, int] = (0, 0)
        if isinstance(position, tuple):
            self.position = position
        self._batches = self._of_group(*self.position)

    def read(self, limit: int) -> Sequence[pa.RecordBatch] | None:
        """`Reader.read`."""
        del limit  # a batch has thousands of rows
        while self.position[0] < self._file.num_row_groups:
            group, number = self.position
            batch = next(self._batches, None)
            if batch is not None:
                self.position = (group, number + 1)
                return [batch]
            self.position = (group + 1, 0)
            self._batches = self._of_group(*self.position)
        return None

    def close(self) -> None:
        """`Reader.close`."""
        self._file.close(force=True)  # also what was opened elsewhere

    def _of_group(self, group: int, done: int) -> Iterator[pa.RecordBatch]:
        if group >= self._file.num_row_groups:
            return iter(())
        batches: Iterator[pa.RecordBatch] = self._file.iter_batches(
            batch_size=self._rows, row_groups=[group], columns=self._columns, use_threads=False
        )
        for _ in range(done):
            next(batches, None)
        return batches


class BatchReader(Generic[Records]):
    """A `MeasuredReader` that makes batches of what another one reads; no position lies within a batch.

    It is a `GaugedReader` if the other one is.

    Args:
        records: has the position and the backlog, and is closed with this reader.
        take: returns the records of the next batch, as `Reader.read`.
        batch_of: makes the batch.
    """

    def __init__(
        self,
        records: MeasuredReader[Any],
        take: Callable[[], Sequence[Records] | None],
        batch_of: Callable[[Sequence[Records]], pa.RecordBatch],
    ) -> None:
        self._records, self._take, self._batch_of = records, take, batch_of
        if isinstance(records, GaugedReader):
            self.gauges = records.gauges

    @property
    def position(self) -> object:
        """`Reader.position`."""
        return self._records.position

    def read(self, limit: int) -> Sequence[pa.RecordBatch] | None:
        """`Reader.read`; waits and raises as `take`."""
        del limit  # a batch has thousands of rows
        records = self._take()
        return records and (self._batch_of(records),)

    def backlog(self) -> float | None:
        """`MeasuredReader.backlog`, in records."""
        return self._records.backlog()

    def close(self) -> None:
        """`Reader.close`."""
        self._records.close()


class ColumnSource(Source[pa.RecordBatch]):
    """A source whose elements are made record batches, or refused."""

    def __init__(self, source: Source[Any]) -> None:
        self._source = source
        self.bounded, self.repeatable, self.word = source.bounded, source.repeatable, source.word

    def partitions(self, tasks: int) -> Sequence[str]:
        """`Source.partitions`."""
        return self._source.partitions(tasks)

    def open(self, partition: str, position: object, context: StageContext) -> Reader[pa.RecordBatch]:
        """`Source.open`."""
        return _ColumnReader(self._source.open(partition, position, context), f"source {context.name!r} gave")


class _ColumnReader:
    def __init__(self, reader: Reader[Any], what: str) -> None:
        self._reader = reader
        self._what = what

    @property
    def position(self) -> object:
        """`Reader.position`."""
        return self._reader.position

    def read(self, limit: int) -> Sequence[pa.RecordBatch] | None:
        """`Reader.read`."""
        elements = self._reader.read(limit)
        return elements and [as_batch(each, self._what) for each in elements]

    def backlog(self) -> float | None:
        """`MeasuredReader.backlog`; None if the reader does not know."""
        return self._reader.backlog() if isinstance(self._reader, MeasuredReader) else None

    def close(self) -> None:
        """`Reader.close`."""
        self._reader.close()
