"""The bytes of a column, for sinks that write each row as a record of bytes."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from heron.errors import UserCodeError
from heron_streamlet.arrow.batches import column_of

__all__ = ["payloads_of"]

_BYTES_OF = {
    pa.binary(): pa.binary(),
    pa.string(): pa.binary(),
    pa.large_binary(): pa.large_binary(),
    pa.large_string(): pa.large_binary(),
}


def payloads_of(batch: pa.RecordBatch, name: str, most_bytes: int) -> list[bytes | None]:
    """The bytes of a column, of texts their UTF-8; None for null.

    Raises:
        UserCodeError: when the batch has no such column, when its type is neither text nor bytes, or when a row has
            more than `most_bytes`.
    """
    column = column_of(batch, name)
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    kind = _BYTES_OF.get(column.type)
    if kind is None:
        msg = f"column {name!r} has the type {column.type}; give a column of text or bytes"
        raise UserCodeError(msg)
    column = column.cast(kind)  # copies nothing
    largest = pc.max(pc.binary_length(column)).as_py() or 0
    if largest > most_bytes:
        row = pc.index(pc.binary_length(column), largest).as_py()
        msg = f"column {name!r}: row {row} has {largest} bytes, more than {most_bytes}"
        raise UserCodeError(msg)
    found: list[bytes | None] = column.to_numpy(zero_copy_only=False).tolist()
    return found
