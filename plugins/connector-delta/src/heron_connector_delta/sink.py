"""A sink that appends to a table in transactions with the checkpoints."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from heron.errors import ConnectorError, UnreachableError, UsageError, UserCodeError
from heron_connector_delta.conform import conformed, row_of
from heron_connector_delta.table import Options, Table, schema_of
from heron_connector_delta.transactions import append, ensure_table, normal
from heron_streamlet.arrow.batches import as_batch
from heron_streamlet.connectors.staged_sink import StagedSink
from heron_streamlet.connectors.staging import StagedFile
from heron_streamlet.connectors.transformer import StageContext

__all__ = ["DeltaSink"]

_log = logging.getLogger(__name__)

_ROWS = 4096  # records that wait in memory to become one batch


class DeltaSink(StagedSink[Any]):
    """Appends each element to a Delta table when its checkpoint is complete, once.

    An element is a record, which is a mapping from the names of columns to values, or a `pyarrow.RecordBatch` or
    `Table`. Columns that an element has not are null.

    Args:
        table: a path, or a URI such as ``s3://bucket/table``.
        id: begins the ids of Delta's application transactions. No other sink of the table may have it, and a pipeline
            must keep it. Letters, digits, ``_`` and ``-``; at most 100.
        folder: where rows wait until their checkpoint is complete. All machines that may run the task need it.
        schema: the columns of the table, which is created if there is none. Without it the table must exist.
        partition_by: the columns that partition a new table; a table that exists must have the same ones.
        options: storage options of delta-rs, or a function that returns them, as for `DeltaSource`.

    Raises:
        UsageError: when an argument is wrong.
    """

    def __init__(
        self,
        table: str | Path,
        *,
        id: str,  # noqa: A002  # as in `Transactions` of Kafka
        folder: str | Path,
        schema: pa.Schema | None = None,
        partition_by: Sequence[str] = (),
        options: Options | None = None,
    ) -> None:
        super().__init__(id=id, folder=folder)
        self._table = Table.of(table, options, "DeltaSink")
        self._partition_by = [partition_by] if isinstance(partition_by, str) else list(partition_by)
        self._given = None if schema is None else _checked(schema, self._partition_by)
        if schema is None and self._partition_by:
            msg = f"DeltaSink: partition_by={self._partition_by} is for a new table: give its `schema`, too"
            raise UsageError(msg)

    def setup(self, context: StageContext) -> None:
        """`Sink.setup`. Creates the table if there is none and `schema` is given.

        Raises:
            UnreachableError: when the storage does not answer, and `schema` is not given.
            ConnectorError: when there is no table and no `schema`, or they differ.
        """
        super().setup(context)
        self._name = context.name
        self._writer: pa.RecordBatchStreamWriter | None = None
        self._rows: list[pa.RecordBatch] = []
        self._schema = self._columns()

    def put(self, element: Any) -> None:  # noqa: ANN401  # records, batches, tables
        """`Sink.put`.

        Raises:
            UserCodeError: when the element does not fit the table.
        """
        try:
            if isinstance(element, Mapping):
                self._rows.append(row_of(element, self._schema))
                if len(self._rows) >= _ROWS:
                    self._flush()
                return
            batch = conformed(as_batch(element, f"a {type(element).__name__} was put:"), self._schema)
        except UserCodeError as error:
            msg = f"sink {self._name!r}, table {self._table.uri}: {error}"
            raise UserCodeError(msg) from error
        self._flush()
        self._write(batch)

    def prepare(self, checkpoint: int) -> None:
        """`TransactionalSink.prepare`."""
        self._flush()
        if self._writer is not None:
            self._writer.close()
            self._writer = None
        super().prepare(checkpoint)

    def write(self, files: Sequence[StagedFile]) -> None:
        """`StagedSink.write`. All of them are one transaction."""
        if self._given is not None:
            ensure_table(self._table, self._given, self._partition_by)
        append(self._table, self.id, files)

    def restore(self, checkpoint: int) -> None:
        """`TransactionalSink.restore`. While the storage does not answer, rows wait for the next commit."""
        self._rows.clear()
        self._writer = None
        super().restore(checkpoint)

    def close(self) -> None:
        """`Sink.close`."""
        self._writer = None
        super().close()

    def _columns(self) -> pa.Schema:
        if self._given is None:
            found = self._table.found()
            if found is None:
                msg = f"sink {self._name!r}: there is no table at {self._table.uri}; give DeltaSink a `schema`"
                raise ConnectorError(msg)
            return schema_of(found)
        try:
            return schema_of(ensure_table(self._table, self._given, self._partition_by))
        except UnreachableError as error:
            _log.warning("sink %s: the table is looked up with the first commit: %s", self._name, error)
            return self._given

    def _flush(self) -> None:
        if self._rows:
            table = pa.Table.from_batches(self._rows).combine_chunks()
            self._rows.clear()
            for batch in table.to_batches():
                self._write(batch)

    def _write(self, batch: pa.RecordBatch) -> None:
        if self._writer is None:
            self._writer = pa.ipc.new_stream(self.staging.file(), batch.schema)
        self._writer.write_batch(batch)


def _checked(schema: pa.Schema, partition_by: Sequence[str]) -> pa.Schema:
    if not isinstance(schema, pa.Schema) or not schema.names or len(set(schema.names)) < len(schema.names):
        msg = f"DeltaSink: schema={schema!r:.60} is not a pyarrow.Schema of one or more different names"
        raise UsageError(msg)
    for name in partition_by:
        if name not in schema.names:
            msg = f"DeltaSink: partition_by: `schema` has no column {name!r}; it has {', '.join(schema.names)}"
            raise UsageError(msg)
    if len(set(partition_by)) == len(schema.names):
        msg = "DeltaSink: partition_by has all columns; a table needs one that is in its files"
        raise UsageError(msg)
    return normal(schema)
