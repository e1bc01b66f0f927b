"""Keys of rows in columns: which types can be keys, and the distinct keys of a batch.

Keys become Python objects, and the core computes their groups as it does for rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.types as pt

from heron.errors import EmitError
from heron_serializer_arrow.values import values_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["check_key_type", "distinct_keys"]

_KEYS = (
    pt.is_null, pt.is_boolean, pt.is_integer, pt.is_float32, pt.is_float64, pt.is_decimal, pt.is_string,
    pt.is_large_string, pt.is_string_view, pt.is_binary, pt.is_large_binary, pt.is_binary_view,
    pt.is_fixed_size_binary, pt.is_date,
)  # fmt: skip


def check_key_type(field: str, kind: pa.DataType) -> None:
    """Check that the values of a type can be part of a key.

    Raises:
        EmitError: when they cannot; names the field and the type.
    """
    value = kind.value_type if isinstance(kind, pa.DictionaryType) else kind
    if any(holds(value) for holds in _KEYS):
        return
    if isinstance(value, pa.TimestampType):
        if value.unit != "ns":
            return
        remedy = "a datetime has microseconds: cast it to timestamp('us')"
    else:
        remedy = "use a column of integers, floats, decimals, text, binary, dates or timestamps"
    msg = f"field {field!r} has the type {kind}, which rows cannot be grouped by; {remedy}"
    raise EmitError(msg)


def distinct_keys(columns: Sequence[pa.Array]) -> tuple[Sequence[object], NDArray[np.int64]]:
    """Return the keys and, for each row, the place of its key; of several columns, tuples of those that occur."""
    if len(columns) == 1:
        return _encoded(columns[0])
    coded = [_encoded(column) for column in columns]
    joined = coded[0][1]
    for keys, codes in coded[1:]:
        # dense after each column: below rows * keys, and so below 2^63
        joined = np.unique(joined * len(keys) + codes, return_inverse=True)[1]
    _, first, places = np.unique(joined, return_index=True, return_inverse=True)
    parts = [[keys[code] for code in codes[first].tolist()] for keys, codes in coded]
    return list(zip(*parts, strict=True)), places


def _encoded(column: pa.Array) -> tuple[Sequence[object], NDArray[np.int64]]:
    dictionary = column if isinstance(column, pa.DictionaryArray) else column.dictionary_encode()
    keys, indices = values_of(dictionary.dictionary), dictionary.indices
    if indices.null_count:
        keys = [*keys, None]
        indices = indices.cast(pa.int64()).fill_null(len(keys) - 1)
    return keys, indices.to_numpy(zero_copy_only=False).astype(np.int64, copy=False)
