"""The data files of one version of a table, and what a reader needs of each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
from deltalake import DeltaTable

from heron.errors import ConnectorError
from heron_connector_delta.table import schema_of

__all__ = ["DataFile", "Pinned", "pinned"]

_VALUE = "partition."
# Readers must know these. The others change what a row is, or where it is.
_FEATURES = frozenset({"timestampNtz", "v2Checkpoint", "vacuumProtocolCheck", "deletionVectors", "columnMapping"})
_READER_WITH_FEATURES = 3


@dataclass(frozen=True, slots=True)
class DataFile:
    """A file.

    Attributes:
        path: in the folder of the table.
        values: of the columns by which the table is partitioned, which are not in the file.
    """

    path: str
    values: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Pinned:
    """A version of a table.

    Attributes:
        schema: its columns.
        files: by their names as partitions of a source.
    """

    version: int
    schema: pa.Schema
    files: Mapping[str, DataFile]


def pinned(table: DeltaTable, uri: str) -> Pinned:
    """What the version of an open table has. A partition has the name ``VERSION:PATH``.

    Raises:
        ConnectorError: when readers of its files alone would see wrong rows.
    """
    _check_protocol(table, uri)
    version, schema = table.version(), schema_of(table)
    names = [name for name in table.metadata().partition_columns if name in schema.names]
    found: dict[str, DataFile] = {}
    for row in pa.table(table.get_add_actions(flatten=True)).to_pylist():
        path = unquote(row["path"])
        found[f"{version}:{path}"] = DataFile(path, {name: row[_VALUE + name] for name in names})
    return Pinned(version, schema, dict(sorted(found.items())))


def _check_protocol(table: DeltaTable, uri: str) -> None:
    protocol = table.protocol()
    features = frozenset(protocol.reader_features or ())
    if protocol.min_reader_version > _READER_WITH_FEATURES or features - _FEATURES:
        unknown = ", ".join(sorted(features - _FEATURES)) or f"reader version {protocol.min_reader_version}"
        msg = f"table {uri}: it needs readers with {unknown}, which DeltaSource has not"
        raise ConnectorError(msg)
    mapping = table.metadata().configuration.get("delta.columnMapping.mode", "none")
    if mapping != "none":
        msg = f"table {uri}: its columns have other names in the files (delta.columnMapping.mode={mapping})"
        raise ConnectorError(msg)
    if "deletionVectors" in features and (count := pa.table(table.deletion_vectors()).num_rows):
        msg = (
            f"table {uri}: {count} files of version {table.version()} have rows that deletion vectors remove; "
            "run REORG TABLE ... APPLY (PURGE), and read the version after it"
        )
        raise ConnectorError(msg)
