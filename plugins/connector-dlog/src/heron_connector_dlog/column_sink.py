"""A sink that writes the rows of columns to logs. It needs pyarrow, so the package does not import it."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

from heron.errors import UsageError, UserCodeError
from heron_connector_dlog.log_namespace import LogNamespace
from heron_connector_dlog.sink import LARGEST_BYTES, DlogSink
from heron_streamlet.arrow.batches import as_batch
from heron_streamlet.arrow.payloads import payloads_of

__all__ = ["DlogColumnSink"]


class DlogColumnSink(DlogSink[pa.RecordBatch]):
    """Writes each row of a stream of columns as a record of a log, as `DlogSink` writes elements.

    A batch of which a row cannot be a record fails as a whole: no row of it is written.

    Args:
        namespace: as for `DlogSink`, and so are `stream` and `folder`.
        data: the name of the column of the data: text or bytes, without nulls.

    Raises:
        UsageError: when an argument is wrong.
    """

    def __init__(
        self, namespace: LogNamespace, stream: str, *, data: str = "data", folder: str | Path | None = None
    ) -> None:
        super().__init__(namespace, stream, folder=folder)
        if not data:
            msg = "DlogColumnSink: data is empty; give the name of a column"
            raise UsageError(msg)
        self._column = data

    def put(self, element: pa.RecordBatch) -> None:
        """`Sink.put`.

        Raises:
            UserCodeError: when the element is no batch, when the column is missing, has a null, or is neither text nor
                bytes, or when a row is too large for a record.
        """
        try:
            batch = as_batch(element, "the element is of the type")
            payloads = [each for each in payloads_of(batch, self._column, LARGEST_BYTES) if each is not None]
        except UserCodeError as error:
            msg = f"sink {self._name!r}: {error}"
            raise UserCodeError(msg) from error
        if missing := batch.num_rows - len(payloads):
            msg = f"sink {self._name!r}: {missing} rows of the column {self._column!r} are null; a record has data"
            raise UserCodeError(msg)
        self._way.put_all(payloads)
