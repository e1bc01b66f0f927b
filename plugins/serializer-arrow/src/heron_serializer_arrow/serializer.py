"""The serializer driver ``arrow``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Self

import pyarrow as pa
import pyarrow.types as pt

from heron.api.columns import Columns, check_depth
from heron.errors import SerializationError
from heron.spi.column_serializer import ColumnSerializer
from heron.spi.options import decode_options
from heron.spi.serializer import Encoding
from heron_serializer_arrow.emitted import batch_of
from heron_serializer_arrow.keys import check_key_type, distinct_keys
from heron_serializer_arrow.received import check_offsets, check_sizes
from heron_serializer_arrow.values import from_values, has_exact_type, to_values

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["ArrowSerializer"]

_SMALL_BYTES = 4096
_ALIGNMENT = 8  # bytes; kernels of Arrow, and other libraries, are slow or warn otherwise


@dataclass(frozen=True, slots=True)
class _Options:
    """No options: what a stream needs is in the configuration of its component."""


class ArrowSerializer(ColumnSerializer):
    """Encodes columns as Arrow IPC streams: the schema, the dictionaries, and one record batch."""

    spi_version: ClassVar[int] = 1
    capabilities: ClassVar[frozenset[str]] = frozenset({"columns", "neutral"})
    encoding: ClassVar[int] = int(Encoding.ARROW)

    @classmethod
    def open(cls, options: Mapping[str, object]) -> Self:
        decode_options(options, _Options, "serializer")
        return cls()

    def encode(self, columns: list[Sequence[object]]) -> bytes:
        """Return the payload of rows: of columns whose values have one type each, which Arrow gives back unchanged."""
        for place, column in enumerate(columns):
            if not has_exact_type(column):
                kinds = ", ".join(sorted({type(value).__name__ for value in column}))
                msg = (
                    f"column {place + 1} has values of {kinds}; Arrow carries rows of None, bool, int, float, str or "
                    "bytes with one type in each field: use topology.serializer pickle, or emit columns"
                )
                raise SerializationError(msg)
        names = [f"f{place}" for place in range(len(columns))]
        rows = len(columns[0]) if columns else 0
        return self.encode_batch(_batch(from_values(columns, names, None), names, rows))

    def decode(self, payload: bytes | memoryview) -> list[Sequence[object]]:
        return to_values(_read(payload))

    def batch_of(self, columns: Columns, fields: Sequence[str]) -> pa.RecordBatch:
        return batch_of(columns, fields)

    def types_of(self, batch: pa.RecordBatch) -> tuple[str, ...]:
        return tuple(map(_name_of, batch.schema.types))

    def check_keys(self, batch: pa.RecordBatch, positions: Sequence[int]) -> None:
        for position in positions:
            field = batch.schema.field(position)
            check_key_type(field.name, field.type)

    def encode_batch(self, batch: pa.RecordBatch, compression: str = "none") -> bytes:
        options = pa.ipc.IpcWriteOptions(compression=None if compression == "none" else compression)
        sink = pa.BufferOutputStream()
        try:
            with pa.ipc.new_stream(sink, batch.schema, options=options) as writer:
                writer.write_batch(_compact(batch))
        except pa.ArrowException as error:
            msg = f"a batch of {batch.num_rows} rows: {error}"
            raise SerializationError(msg) from error
        payload: bytes = sink.getvalue().to_pybytes()
        if options.compression is not None:
            _check_compressed(payload)
        return payload

    def decode_batch(self, payload: bytes | memoryview, rows: int) -> pa.RecordBatch:
        batch = _read(payload)
        if batch.num_rows != rows:
            msg = f"a payload of {batch.num_rows} rows is announced as {rows} rows"
            raise SerializationError(msg)
        return batch

    def take(self, batch: pa.RecordBatch, numbers: NDArray[np.int64]) -> pa.RecordBatch:
        return batch.take(pa.array(numbers))

    def copy(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        if batch.get_total_buffer_size() > 2 * batch.nbytes + _SMALL_BYTES:  # a slice would be copied with all its rows
            return batch.take(pa.array(range(batch.num_rows), pa.int64()))
        return batch.copy_to(pa.default_cpu_memory_manager())

    def concat(self, batches: Sequence[pa.RecordBatch]) -> pa.RecordBatch:
        return pa.concat_batches(batches) if len(batches) > 1 else batches[0]

    def distinct_keys(
        self, batch: pa.RecordBatch, positions: Sequence[int]
    ) -> tuple[Sequence[object], NDArray[np.int64]]:
        return distinct_keys([batch.column(position) for position in positions])

    def from_columns(
        self, columns: Sequence[Sequence[object]], fields: Sequence[str], like: pa.Schema | None
    ) -> pa.RecordBatch:
        for position, (name, column) in enumerate(zip(fields, columns, strict=True)):
            if like is None or pt.is_null(like.types[position]):
                try:
                    check_depth(column)
                except ValueError as error:
                    msg = f"field {name!r}: {error}"
                    raise SerializationError(msg) from error
        rows = len(columns[0]) if columns else 0
        return _batch(from_values(columns, fields, like), fields, rows)

    def to_columns(self, batch: pa.RecordBatch) -> list[Sequence[object]]:
        return to_values(batch)


def _name_of(kind: pa.DataType) -> str:
    """The name of a type, whatever the layout of its values: Arrow has three for text, and pandas and Polars differ."""
    value = kind.value_type if isinstance(kind, pa.DictionaryType) else kind
    if pt.is_large_string(value) or pt.is_string_view(value):
        return "string"
    return "binary" if pt.is_large_binary(value) or pt.is_binary_view(value) else str(value)


def _batch(arrays: list[pa.Array], names: Sequence[str], rows: int) -> pa.RecordBatch:
    if arrays:
        return pa.RecordBatch.from_arrays(arrays, names=list(names))
    return pa.RecordBatch.from_struct_array(pa.array([{}] * rows, pa.struct([])))


def _read(payload: bytes | memoryview) -> pa.RecordBatch:
    """Read the only batch of a payload in place: its buffers refer to `payload`, unless they are not aligned there."""
    check_sizes(payload)
    buffer = pa.py_buffer(payload)
    if buffer.address % _ALIGNMENT:
        buffer = pa.py_buffer(bytes(payload))
    try:
        with pa.ipc.open_stream(buffer) as reader:
            batch = reader.read_next_batch()
        batch.validate()
        check_offsets(batch)
    except (pa.ArrowException, StopIteration, OSError, ValueError) as error:
        msg = f"the payload is not an Arrow IPC stream with a batch: {error}"
        raise SerializationError(msg) from error
    return batch


def _check_compressed(payload: bytes) -> None:
    try:
        check_sizes(payload)
    except SerializationError as error:
        msg = f"{error}; its receivers refuse it: set topology.columns.compression to none, or emit a reference"
        raise SerializationError(msg) from error


def _compact(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Leave out what a part of a batch does not use of its dictionaries, where that would be most of the payload."""
    columns = [_compact_column(column) for column in batch.columns]
    if all(ours is theirs for ours, theirs in zip(columns, batch.columns, strict=True)):
        return batch
    return pa.RecordBatch.from_arrays(columns, schema=batch.schema)


def _compact_column(column: pa.Array) -> pa.Array:
    if not isinstance(column, pa.DictionaryArray) or len(column.dictionary) <= 2 * len(column):
        return column
    return column.dictionary_decode().dictionary_encode().cast(column.type)
