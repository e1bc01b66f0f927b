"""A source that reads one version of a table. Each data file is a partition of the source."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
from deltalake import DeltaTable
from deltalake.fs import DeltaStorageHandler
from pyarrow import fs, parquet

from heron.errors import ConnectorError, UnreachableError, UsageError, nearest
from heron_connector_delta.data_files import DataFile, Pinned, pinned
from heron_connector_delta.table import Options, Table, translated
from heron_streamlet.arrow.column_sources import ROWS, ParquetReader, check_rows
from heron_streamlet.connectors.sources import Reader, Source
from heron_streamlet.connectors.transformer import StageContext

__all__ = ["DeltaSource"]


class DeltaSource(Source[pa.RecordBatch]):
    """The rows of a Delta table at one version, in batches, for `Builder.new_columns`.

    The version is found when the pipeline starts, and stays: tasks that restart read the same files. Batches have the
    table's columns in its order, also those by which it is partitioned.

    Args:
        table: a path, or a URI such as ``s3://bucket/table``.
        columns: the names of the columns to read; None for all.
        version: the number of the version; None for the newest one.
        rows: the number of rows in a batch, at most; from 1 to 1,048,576.
        options: storage options of delta-rs, such as ``{"AWS_REGION": "eu-west-1"}``. A function that returns them is
            called in each task, so passwords need not be part of the topology.

    Raises:
        UsageError: when an argument is wrong.
    """

    word = "delta"

    def __init__(
        self,
        table: str | Path,
        *,
        columns: Sequence[str] | None = None,
        version: int | None = None,
        rows: int = ROWS,
        options: Options | None = None,
    ) -> None:
        check_rows(rows, "DeltaSource")
        if version is not None and (type(version) is not int or version < 0):
            msg = f"DeltaSource: version={version!r} is not an integer from 0 on"
            raise UsageError(msg)
        if isinstance(columns, str) or (columns is not None and not 0 < len(columns) == len(set(columns))):
            msg = f"DeltaSource: columns={columns!r} is not a list of one or more different names"
            raise UsageError(msg)
        self._table = Table.of(table, options, "DeltaSource")
        self._columns = None if columns is None else list(columns)
        self._version, self._rows = version, rows
        self._pinned: Pinned | None = None

    def partitions(self, tasks: int) -> Sequence[str]:  # one for each file
        """``VERSION:PATH`` of each data file. Reads the table's log.

        Raises:
            UsageError: when there is no table, or it has no such version or column.
            UnreachableError: when its storage does not answer.
            ConnectorError: when the version cannot be read, such as for deletion vectors.
        """
        uri = self._table.uri
        with translated(uri):
            found = pinned(self._opened(), uri)
        for name in self._columns or ():
            if name not in found.schema.names:
                known = ", ".join(found.schema.names)
                msg = f"DeltaSource({uri}): no column {name!r}{nearest(name, found.schema.names)}; known: {known}"
                raise UsageError(msg)
        if self._columns is not None:
            fields = [found.schema.field(name) for name in self._columns]
            found = Pinned(found.version, pa.schema(fields), found.files)
        self._pinned = found
        return list(found.files)

    def open(self, partition: str, position: object, context: StageContext) -> Reader[pa.RecordBatch]:
        """`Source.open`.

        Raises:
            UsageError: when the partition is not one that `partitions` has found.
            UnreachableError: when the storage does not answer.
            ConnectorError: when the file is gone, or is no Parquet file.
        """
        if self._pinned is None or partition not in self._pinned.files:
            version = "`partitions` was not called" if self._pinned is None else f"version {self._pinned.version}"
            msg = f"source {context.name!r}: there is no partition {partition!r} in {self._table.uri}: {version}"
            raise UsageError(msg)
        file = self._pinned.files[partition]
        where = f"source {context.name!r}, table {self._table.uri}, version {self._pinned.version}, file {file.path}"
        try:
            with translated(self._table.uri):
                return _FileReader(self._parquet(file), file, self._pinned.schema, self._rows, position, where)
        except UnreachableError as error:
            if not isinstance(error.__cause__, FileNotFoundError):
                raise
            msg = (
                f"{where}: the file is gone; VACUUM removed it. To go on with the newest version, submit the pipeline "
                "anew without its checkpoint; to keep files longer, raise delta.deletedFileRetentionDuration"
            )
            raise ConnectorError(msg) from error

    def _opened(self) -> DeltaTable:
        newest = self._table.found()
        if newest is None:
            msg = f"DeltaSource: there is no table at {self._table.uri}"
            raise UsageError(msg)
        if self._version is None or self._version == newest.version():
            return newest
        if self._version > newest.version():
            msg = f"DeltaSource({self._table.uri}): no version {self._version}; the newest is {newest.version()}"
            raise UsageError(msg)
        try:
            older = self._table.found(self._version)
        except ConnectorError as error:
            raise self._gone() from error
        if older is None:
            raise self._gone()
        return older

    def _gone(self) -> UsageError:
        msg = (
            f"DeltaSource({self._table.uri}): version {self._version} cannot be read any more; the table keeps the log "
            "of a version for delta.logRetentionDuration"
        )
        return UsageError(msg)

    def _parquet(self, file: DataFile) -> parquet.ParquetFile:
        storage = fs.PyFileSystem(DeltaStorageHandler(self._table.uri, self._table.storage_options() or None))
        return parquet.ParquetFile(storage.open_input_file(file.path), coerce_int96_timestamp_unit="us")


class _FileReader:
    """Reads a data file, and gives its batches the columns and types of the table."""

    def __init__(
        self, opened: parquet.ParquetFile, file: DataFile, schema: pa.Schema, rows: int, position: object, where: str
    ) -> None:
        inside = set(opened.schema_arrow.names)
        self._reader = ParquetReader(opened, [name for name in schema.names if name in inside], rows, position)
        self._file, self._schema, self._where = file, schema, where

    @property
    def position(self) -> object:
        """`Reader.position`."""
        return self._reader.position

    def read(self, limit: int) -> Sequence[pa.RecordBatch] | None:
        """`Reader.read`.

        Raises:
            ConnectorError: when a column of the file has a type that cannot become that of the table.
        """
        batches = self._reader.read(limit)
        return batches and [self._completed(each) for each in batches]

    def close(self) -> None:
        """`Reader.close`."""
        self._reader.close()

    def _completed(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        arrays = [self._column(batch, field) for field in self._schema]
        return pa.RecordBatch.from_arrays(arrays, schema=self._schema)

    def _column(self, batch: pa.RecordBatch, field: pa.Field) -> pa.Array:
        if field.name not in batch.schema.names:  # by which the table is partitioned, or that is newer than the file
            value = self._file.values.get(field.name)
            if value is None:
                return pa.nulls(batch.num_rows, field.type)
            return pa.repeat(pa.scalar(value, field.type), batch.num_rows)
        try:
            return batch.column(field.name).cast(field.type)
        except pa.ArrowException:
            kind = batch.schema.field(field.name).type
            msg = f"{self._where}: column {field.name!r} of type {kind} does not fit the table's {field.type}"
            raise ConnectorError(msg) from None  # its text has the value
