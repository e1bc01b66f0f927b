"""Columns as components exchange them: what `emit_columns` accepts, and how columns are compressed on the wire."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol, TypeAlias

from heron.errors import ConfigError, known

__all__ = ["COMPRESSIONS", "Columns", "SupportsArrowArray", "SupportsArrowStream", "compression_of"]

COMPRESSIONS = ("none", "lz4", "zstd")
"""The compressions of columns on the wire."""


class SupportsArrowArray(Protocol):
    """An object with Arrow's C data interface for one batch, such as `pyarrow.RecordBatch`."""

    def __arrow_c_array__(self, requested_schema: object = None) -> tuple[object, object]:
        """Return capsules of the schema and the array."""
        ...


class SupportsArrowStream(Protocol):
    """An object with Arrow's C stream interface, such as `pyarrow.Table` and the data frames of pandas and Polars."""

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Return a capsule of a stream of batches."""
        ...


Columns: TypeAlias = SupportsArrowArray | SupportsArrowStream | Mapping[str, object]
"""What `emit_columns` accepts: a record batch, a table, a data frame, or a mapping of field names to arrays."""


def compression_of(value: str, stream: str) -> str:
    """Return the compression of a stream's columns by a value of ``topology.columns.compression``.

    Args:
        value: one of `COMPRESSIONS` for all streams of a component, or ``STREAM: COMPRESSION, ...`` for some.
        stream: the name of the stream; a stream that is not named is not compressed.

    Raises:
        ConfigError: when the value names another compression.
    """
    chosen = "none"
    for part in value.split(","):
        name, colon, compression = (each.strip() for each in part.rpartition(":"))
        if compression not in COMPRESSIONS:
            msg = f"unknown compression {compression!r} of columns; known: {known(COMPRESSIONS)}"
            raise ConfigError(msg)
        if not colon or name == stream:
            chosen = compression
    return chosen
