"""Appends staged files to a table, each in one transaction, and each once.

A transaction of Delta has the id of an application and a version; the table keeps the last version of each id. The id
here is ``ID.TASK.RUN``, the version the checkpoint of the newest file in the transaction. Rows and version become
visible together. RUN tells submissions apart, because each counts its checkpoints from 1.

Two processes may have the same id: an older one of a task may wake up in the middle of its commit. Delta refuses the
transaction of the second one if it began before the first one had ended, as both change the version of one id.
"""

from __future__ import annotations

import contextlib
from collections.abc import Generator, Sequence
from pathlib import Path

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, Schema, Transaction, write_deltalake
from deltalake.exceptions import CommitFailedError
from pyarrow import types

from heron.errors import ConnectorError, UsageError, UserCodeError
from heron_connector_delta.conform import conformed
from heron_connector_delta.table import Table, schema_of, translated
from heron_streamlet.connectors.staging import StagedFile

__all__ = ["append", "ensure_table", "marker_of", "normal"]

_ATTEMPTS = 5  # with new looks at the version; delta-rs itself tries again when other writers append
_RETRIES = 100  # of one attempt; each loses against another writer, such as the other tasks of the sink


def append(table: Table, name: str, files: Sequence[StagedFile]) -> None:
    """Append the rows of files of one task and run, by checkpoint, unless they are there.

    Raises:
        UnreachableError: when the storage does not answer, or other writers are always first; call it again.
        ConnectorError: when there is no table, it refuses the rows, or a file is cut.
    """
    marker = marker_of(name, files[0])
    for attempt in range(1, _ATTEMPTS + 1):
        opened = table.found()
        if opened is None:
            msg = f"table {table.uri}: there is no table; was it removed while the pipeline ran?"
            raise ConnectorError(msg)
        with translated(table.uri):
            done = opened.transaction_version(marker)
            new = [file for file in files if done is None or file.checkpoint > done]
            if not new:
                return
            try:
                _write(opened, new, marker)
            except CommitFailedError:
                if attempt == _ATTEMPTS:
                    raise
            else:
                return


def marker_of(name: str, file: StagedFile) -> str:
    """The id of the application for a file."""
    return f"{name}.{file.task}.{file.run}"


def ensure_table(table: Table, schema: pa.Schema, partition_by: Sequence[str]) -> DeltaTable:
    """The table; it is created if there is none.

    Raises:
        ConnectorError: when the table has other columns, or other columns partition it.
    """
    found = table.found()
    if found is None:
        with translated(table.uri):
            return DeltaTable.create(
                table.uri,
                Schema.from_arrow(schema),
                mode="ignore",
                partition_by=list(partition_by),
                storage_options=table.storage_options() or None,
            )
    there = schema_of(found)
    for field in schema:
        index = there.get_field_index(field.name)
        if index < 0 or there.field(index).type != field.type:
            has = f"the type {there.field(index).type}" if index >= 0 else f"only {', '.join(there.names)}"
            msg = f"table {table.uri}: `schema` has {field.name!r} of type {field.type}; the table has {has}"
            raise ConnectorError(msg)
    with translated(table.uri):
        columns = list(found.metadata().partition_columns)
    if partition_by and columns != list(partition_by):
        msg = f"table {table.uri}: partition_by={list(partition_by)}, but the table has {columns}"
        raise ConnectorError(msg)
    return found


def normal(schema: pa.Schema) -> pa.Schema:
    """A schema with the types that a Delta table has for it. Nanoseconds become microseconds, which all readers know.

    Raises:
        UsageError: when Delta has no type for a column.
    """
    found = []
    for field in schema:
        nanoseconds = types.is_timestamp(field.type) and field.type.unit == "ns"
        own = field.with_type(pa.timestamp("us", field.type.tz)) if nanoseconds else field
        try:
            found += pa.schema(Schema.from_arrow(pa.schema([own])).to_arrow())
        except Exception as error:  # delta-rs has no class for it, and appends a stack of calls
            msg = f"DeltaSink: schema: column {field.name!r}: {str(error).splitlines()[0]}"
            raise UsageError(msg) from error
    return pa.schema(found)


def _write(table: DeltaTable, files: Sequence[StagedFile], marker: str) -> None:
    schema = schema_of(table)
    failures: list[ConnectorError] = []  # what passes through delta-rs arrives as a text
    with contextlib.closing(_batches([file.path for file in files], schema, failures)) as batches:
        reader = pa.RecordBatchReader.from_batches(schema, batches)
        transaction = Transaction(marker, files[-1].checkpoint)
        properties = CommitProperties(max_commit_retries=_RETRIES, app_transactions=[transaction])
        try:
            write_deltalake(table, reader, mode="append", commit_properties=properties)
        except Exception as error:
            if failures:
                raise failures[0] from error
            raise


def _batches(
    paths: Sequence[Path], schema: pa.Schema, failures: list[ConnectorError]
) -> Generator[pa.RecordBatch, None, None]:
    for path in paths:
        try:
            with pa.OSFile(str(path)) as file, pa.ipc.open_stream(file) as reader:
                for batch in reader:
                    yield conformed(batch, schema)
        except (OSError, pa.ArrowInvalid, UserCodeError) as error:
            failures.append(ConnectorError(f"{path}: {error}"))
            raise failures[0] from error
