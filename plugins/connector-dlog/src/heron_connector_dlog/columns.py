"""The records of logs as columns. It needs pyarrow, so the package does not import it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from heron_connector_dlog.block import Block
from heron_connector_dlog.source import DlogSource
from heron_streamlet.arrow.column_sources import BatchReader, check_rows, chosen_columns
from heron_streamlet.connectors.sources import Source
from heron_streamlet.connectors.transformer import StageContext

__all__ = ["DlogColumns"]

_ROWS = 16_384  # a checkpoint, acks and back pressure wait for a batch


def _numbers(number: int, blocks: Sequence[Block], stream: str) -> pa.Array:
    del stream
    found = np.frombuffer(b"".join(each.numbers(number) for each in blocks), ">i8").astype(np.int64)
    return pa.array(found)


def _streams(blocks: Sequence[Block], stream: str) -> pa.Array:
    return pa.repeat(pa.scalar(stream), sum(map(len, blocks)))


def _data(blocks: Sequence[Block], stream: str) -> pa.Array:
    del stream
    sizes = np.frombuffer(b"".join(each.sizes() for each in blocks), ">i4")
    offsets = np.zeros(len(sizes) + 1, np.int32)
    np.cumsum(sizes, out=offsets[1:])
    data = b"".join(each.data() for each in blocks)
    return pa.Array.from_buffers(pa.binary(), len(sizes), [None, pa.py_buffer(offsets), pa.py_buffer(data)])


_COLUMNS: Mapping[str, Callable[[Sequence[Block], str], Any]] = {
    "stream": _streams,
    "segment": partial(_numbers, 0),
    "entry": partial(_numbers, 1),
    "slot": partial(_numbers, 2),
    "transaction_id": partial(_numbers, 4),
    "data": _data,
}


class DlogColumns(Source[pa.RecordBatch]):
    """The records of a `DlogSource` in batches, for `Builder.new_columns`.

    The columns are ``stream``, ``segment``, ``entry`` and ``slot`` (the DLSN), ``transaction_id`` and ``data``. A batch
    is of one log.

    Args:
        source: the logs.
        columns: the names of the columns to make, in this order; None for all. Each one takes time.
        rows: the number of records in a batch, at most; from 1 to 1,048,576.

    Raises:
        UsageError: when a column does not exist, or comes twice, or `rows` is out of range.
    """

    repeatable = False  # from a position, but in batches of other sizes
    word = "dlog"

    def __init__(self, source: DlogSource, *, columns: Sequence[str] | None = None, rows: int = _ROWS) -> None:
        check_rows(rows, "DlogColumns")
        names = chosen_columns(columns, _COLUMNS, "DlogColumns")
        self._source, self._names, self._rows = source, names, rows
        self.bounded = source.bounded

    def partitions(self, tasks: int) -> Sequence[str]:
        """`DlogSource.partitions`."""
        return self._source.partitions(tasks)

    def open(self, partition: str, position: object, context: StageContext) -> BatchReader[Block]:
        """`DlogSource.open`."""
        records = self._source.open(partition, position, context)
        return BatchReader(records, partial(records.take, self._rows), partial(batch_of, partition, self._names))


def batch_of(stream: str, names: Sequence[str], blocks: Sequence[Block]) -> pa.RecordBatch:
    """These columns of the records of a log."""
    return pa.RecordBatch.from_arrays([_COLUMNS[name](blocks, stream) for name in names], names=list(names))
