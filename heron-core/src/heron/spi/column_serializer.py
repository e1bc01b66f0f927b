"""Contract of serializers whose batches are columns: they carry what `emit_columns` and `process_columns` exchange.

The driver ``arrow`` implements it. The core calls it and imports no array library itself.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING

from heron.spi.serializer import Serializer

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from pyarrow import RecordBatch, Schema

    from heron.api.columns import Columns

__all__ = ["ColumnSerializer"]


class ColumnSerializer(Serializer):
    """Encodes, decodes and divides record batches; a serializer with the capability ``columns``.

    Pure, like `Serializer`, and called by the same threads. A batch has one column for each declared field of its
    stream, in that order. No method changes a batch. Batches and rows have the same encoding, so that a component that
    receives columns reads rows of this serializer without a conversion.
    """

    @abstractmethod
    def batch_of(self, columns: Columns, fields: Sequence[str]) -> RecordBatch:
        """Return the batch of what an author emitted, with the columns in the order of `fields`; copies no values.

        Raises:
            EmitError: when the columns are not named as the fields, have different lengths, or are no columns at all.
        """

    @abstractmethod
    def types_of(self, batch: RecordBatch) -> tuple[str, ...]:
        """Return the name of the type of each column; layouts of one type, as dictionaries, have one name."""

    @abstractmethod
    def check_keys(self, batch: RecordBatch, positions: Sequence[int]) -> None:
        """Check that rows can be grouped by these columns, by their types alone.

        Raises:
            EmitError: when the values of a type cannot be part of a key (`heron.planner.key_encoding`).
        """

    @abstractmethod
    def encode_batch(self, batch: RecordBatch, compression: str = "none") -> bytes:
        """Return the payload of a batch; `compression` is one of `heron.api.columns.COMPRESSIONS`.

        Raises:
            SerializationError: when it cannot be encoded.
        """

    @abstractmethod
    def decode_batch(self, payload: bytes | memoryview, rows: int) -> RecordBatch:
        """Return the batch of a payload; it may refer to the memory of `payload`, which stays unchanged.

        Raises:
            SerializationError: when the bytes are not a batch with this number of rows.
        """

    @abstractmethod
    def take(self, batch: RecordBatch, numbers: NDArray[np.int64]) -> RecordBatch:
        """Return the rows with these numbers, in this order."""

    @abstractmethod
    def copy(self, batch: RecordBatch) -> RecordBatch:
        """Return the same rows in memory of their own; the memory of a batch may be shared with an author's arrays."""

    @abstractmethod
    def concat(self, batches: Sequence[RecordBatch]) -> RecordBatch:
        """Return the rows of all batches, which have equal types."""

    @abstractmethod
    def distinct_keys(self, batch: RecordBatch, positions: Sequence[int]) -> tuple[Sequence[object], NDArray[np.int64]]:
        """Return ``(keys, codes)``: row n has the key ``keys[codes[n]]``. Several rows may share an entry of `keys`.

        A key of one column is its value as a Python object; a key of several columns is a tuple.
        """

    @abstractmethod
    def from_columns(
        self, columns: Sequence[Sequence[object]], fields: Sequence[str], like: Schema | None
    ) -> RecordBatch:
        """Return the batch of rows that were emitted one by one: one sequence of values for each field.

        The types are those of `like`; where that has none (it is None, or a column had only None) they are inferred.

        Raises:
            SerializationError: when the values of a column have no common type, or do not fit `like`; names the field
                and both types.
        """

    @abstractmethod
    def to_columns(self, batch: RecordBatch) -> list[Sequence[object]]:
        """Return the values of each column as Python objects.

        Raises:
            SerializationError: when Python has no value for one of them; names the field and the type.
        """
