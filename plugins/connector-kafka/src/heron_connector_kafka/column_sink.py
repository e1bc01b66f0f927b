"""A sink that writes the rows of columns to a topic. It needs pyarrow, so the package does not import it."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import repeat

import pyarrow as pa

from heron.errors import UsageError, UserCodeError
from heron_connector_kafka.cluster import Options
from heron_connector_kafka.sink import KafkaSink, Transactions
from heron_streamlet.arrow.batches import as_batch
from heron_streamlet.arrow.payloads import payloads_of

__all__ = ["KafkaColumnSink"]


class KafkaColumnSink(KafkaSink[pa.RecordBatch]):
    """Writes each row of a stream of columns as a record of a topic, as `KafkaSink` writes elements.

    A batch of which a row cannot be a record fails as a whole: no row of it is written. Records with headers, or with a
    time that is not that of the writing, are `NewRecord`s of a `KafkaSink`.

    Args:
        servers: as for `KafkaSink`, and so are `topic`, `transactions` and `options`.
        value: the name of the column of the values: text or bytes. A null is a tombstone.
        key: the name of the column of the keys; None for records without keys.

    Raises:
        UsageError: when an argument is wrong.
    """

    def __init__(
        self,
        servers: str | Sequence[str],
        topic: str,
        *,
        value: str = "value",
        key: str | None = None,
        transactions: Transactions | None = None,
        options: Options | None = None,
    ) -> None:
        super().__init__(servers, topic, transactions=transactions, options=options)
        if not value or key == "":
            msg = f"KafkaColumnSink: value={value!r}, key={key!r}: give the names of columns"
            raise UsageError(msg)
        self._value_column, self._key_column = value, key

    def put(self, element: pa.RecordBatch) -> None:
        """`Sink.put`.

        Raises:
            UserCodeError: when the element is no batch, when a column is missing or is neither text nor bytes, or when
                a row is too large for a record.
        """
        room_bytes = self._largest_bytes
        try:
            batch = as_batch(element, "the element is of the type")
            values = payloads_of(batch, self._value_column, room_bytes)
            if self._key_column is None:
                self._way.append_all(repeat(None), values)
                return
            keys = payloads_of(batch, self._key_column, room_bytes)
        except UserCodeError as error:
            msg = f"sink {self._name!r}: {error}"
            raise UserCodeError(msg) from error
        for key, value in zip(keys, values, strict=True):
            self._check_size(len(key or b"") + len(value or b""))
        self._way.append_all(keys, values)
