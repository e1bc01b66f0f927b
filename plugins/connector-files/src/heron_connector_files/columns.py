"""The lines of logs as columns. It needs pyarrow, so the package does not import it."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from heron_connector_files.reader import DirectoryReader
from heron_connector_files.source import FilesSource
from heron_streamlet.arrow.column_sources import ROWS, check_rows
from heron_streamlet.connectors.sources import Source
from heron_streamlet.connectors.transformer import StageContext

__all__ = ["FileColumns"]

_SCHEMA = pa.schema([("log", pa.string()), ("offset", pa.int64()), ("data", pa.binary()), ("is_complete", pa.bool_())])


class FileColumns(Source[pa.RecordBatch]):
    """The lines of a `FilesSource` in batches, for `Builder.new_columns`: a column for each field of a `LogLine`.

    Args:
        source: the logs.
        rows: the number of lines in a batch, at most; from 1 to 1,048,576.

    Raises:
        UsageError: when `rows` is out of range.
    """

    bounded = False
    repeatable = False  # from a position, but the logs of a partition may then come in another order
    word = "files"

    def __init__(self, source: FilesSource, rows: int = ROWS) -> None:
        check_rows(rows, "FileColumns")
        self._source, self._rows = source, rows

    def partitions(self, tasks: int) -> Sequence[str]:
        """`FilesSource.partitions`."""
        return self._source.partitions(tasks)

    def open(self, partition: str, position: object, context: StageContext) -> ColumnReader:
        """`Source.open`."""
        return ColumnReader(self._source.open(partition, position, context), self._rows)


class ColumnReader:
    """A `Reader` that gives one batch at a time, so that no position lies within a batch."""

    def __init__(self, lines: DirectoryReader, rows: int) -> None:
        self._lines, self._rows = lines, rows

    @property
    def position(self) -> object:
        """`Reader.position`."""
        return self._lines.position

    def read(self, limit: int) -> Sequence[pa.RecordBatch]:
        """`Reader.read`; raises as `DirectoryReader.read`."""
        lines = self._lines.read(self._rows)
        if not lines:
            return ()
        columns = zip(zip(*lines, strict=True), _SCHEMA, strict=True)
        arrays = [pa.array(values, field.type) for values, field in columns]
        return (pa.RecordBatch.from_arrays(arrays, schema=_SCHEMA),)

    def close(self) -> None:
        """`Reader.close`."""
        self._lines.close()
