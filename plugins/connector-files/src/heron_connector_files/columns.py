"""The lines of logs as columns. It needs pyarrow, so the package does not import it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import pyarrow as pa

from heron_connector_files.log_line import LogLine
from heron_connector_files.source import FilesSource
from heron_streamlet.arrow.column_sources import ROWS, BatchReader, check_rows
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

    def open(self, partition: str, position: object, context: StageContext) -> BatchReader[LogLine]:
        """`Source.open`."""
        lines = self._source.open(partition, position, context)
        return BatchReader(lines, partial(lines.read, self._rows), _batch_of)


def _batch_of(lines: Sequence[LogLine]) -> pa.RecordBatch:
    columns = zip(zip(*lines, strict=True), _SCHEMA, strict=True)
    return pa.RecordBatch.from_arrays([pa.array(values, field.type) for values, field in columns], schema=_SCHEMA)
