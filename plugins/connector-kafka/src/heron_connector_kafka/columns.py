"""The records of topics as columns. It needs pyarrow, so the package does not import it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, TypeAlias

import pyarrow as pa
from confluent_kafka import Message

from heron_connector_kafka.source import KafkaSource
from heron_streamlet.arrow.column_sources import BatchReader, check_rows, chosen_columns
from heron_streamlet.connectors.sources import Source
from heron_streamlet.connectors.transformer import StageContext

__all__ = ["KafkaColumns"]

_ROWS = 16_384  # a checkpoint, acks and back pressure wait for a batch

Messages: TypeAlias = Sequence[Message]


def _times_ms(messages: Messages) -> list[int | None]:
    return [milliseconds if kind else None for kind, milliseconds in [each.timestamp() for each in messages]]


_HEADERS = pa.list_(pa.struct([("name", pa.string()), ("value", pa.binary())]))
_COLUMNS: Mapping[str, tuple[pa.DataType, Callable[[Messages], Sequence[Any]]]] = {
    "topic": (pa.string(), lambda messages: [each.topic() for each in messages]),
    "partition": (pa.int32(), lambda messages: [each.partition() for each in messages]),
    "offset": (pa.int64(), lambda messages: [each.offset() for each in messages]),
    "timestamp": (pa.timestamp("ms", "UTC"), _times_ms),
    "key": (pa.binary(), lambda messages: [each.key() for each in messages]),
    "value": (pa.binary(), lambda messages: [each.value() for each in messages]),
    "headers": (_HEADERS, lambda messages: [each.headers() or () for each in messages]),
}


class KafkaColumns(Source[pa.RecordBatch]):
    """The records of a `KafkaSource` in batches, for `Builder.new_columns`.

    The columns are ``topic``, ``partition``, ``offset``, ``timestamp`` (null if a record has none), ``key``, ``value``
    and ``headers`` (lists of ``name`` and ``value``). A batch is of one partition.

    Args:
        source: the topics.
        columns: the names of the columns to make, in this order; None for all. Each one takes time.
        rows: the number of records in a batch, at most; from 1 to 1,048,576.

    Raises:
        UsageError: when a column does not exist, or comes twice, or `rows` is out of range.
    """

    repeatable = False  # from a position, but in batches of other sizes
    word = "kafka"

    def __init__(self, source: KafkaSource, *, columns: Sequence[str] | None = None, rows: int = _ROWS) -> None:
        check_rows(rows, "KafkaColumns")
        names = chosen_columns(columns, _COLUMNS, "KafkaColumns")
        self._source, self._names, self._rows = source, names, rows
        self.bounded = source.bounded

    def partitions(self, tasks: int) -> Sequence[str]:
        """`KafkaSource.partitions`."""
        return self._source.partitions(tasks)

    def open(self, partition: str, position: object, context: StageContext) -> BatchReader[Message]:
        """`KafkaSource.open`."""
        records = self._source.open(partition, position, context)
        return BatchReader(records, partial(records.take, self._rows), self._batch_of)

    def _batch_of(self, messages: Sequence[Message]) -> pa.RecordBatch:
        makers = [_COLUMNS[name] for name in self._names]
        arrays = [pa.array(make(messages), kind) for kind, make in makers]
        return pa.RecordBatch.from_arrays(arrays, names=list(self._names))
