"""The serializer arrow: its contract, its rows, and data frames."""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from heron.errors import SerializationError
from heron.instance.codec.batch_codec import decode_columns
from heron_serializer_arrow import ArrowSerializer
from heron_testing.contracts.column_serializer import ColumnSerializerContract
from heron_testing.contracts.serializer import same

SERIALIZER = ArrowSerializer.open({})
PINNED = Path(__file__).with_name("payload.bin")
RECORD_BATCH = pa.record_batch(
    {"word": pa.array(["a", "ü", None]).dictionary_encode(), "n": pa.array([1, -(2**63), None]), "x": [0.5, None, 1.0]}
)


class TestContract(ColumnSerializerContract):
    """The serializer meets the contract of column serializers."""

    name = "arrow"
    driver_class = ArrowSerializer


@pytest.mark.parametrize(
    "values",
    [(None, True, False), (1, -(2**63), None), (0.0, -0.0, float("nan")), ("ä", "", None), (b"\0", b"", None), (None,)],
    ids=repr,
)
def test_rows_of_one_type_arrive_as_they_were(values: tuple[object, ...]) -> None:
    """`topology.serializer: arrow`: rows that other languages and column bolts read without a conversion."""
    payload = SERIALIZER.encode([values, list(range(len(values)))])
    arrived, numbers = decode_columns(payload, len(values), SERIALIZER)
    assert all(map(same, values, arrived))
    assert list(numbers) == list(range(len(values)))
    assert SERIALIZER.decode_batch(payload, len(values)).num_columns == 2


@pytest.mark.parametrize("values", [(1, "a"), (1, 1.5), (True, 1), ([1],), (2**64,), ((1, 2),)], ids=repr)
def test_rows_that_would_arrive_changed_are_refused(values: tuple[object, ...]) -> None:
    """Arrow would make floats of ints and lists of tuples."""
    with pytest.raises(SerializationError):
        SERIALIZER.encode([values])


def test_a_payload_is_a_plain_ipc_stream_that_is_read_in_place() -> None:
    """Any Arrow reader reads it. A batch refers to the frame that it arrived in, unless it is not aligned there."""
    payload = SERIALIZER.encode_batch(pa.record_batch({"n": pa.array(range(1000))}))
    assert pa.ipc.open_stream(payload).read_all().to_pydict() == {"n": list(range(1000))}
    for head in (b"head" * 4, b"head" * 4 + b"odd"):
        frame = head + payload
        batch = SERIALIZER.decode_batch(memoryview(frame)[len(head) :], 1000)
        address = batch.column(0).buffers()[1].address
        assert address % 8 == 0
        begins = pa.py_buffer(frame).address
        assert (begins <= address < begins + len(frame)) is (len(head) % 8 == 0)
        assert batch.column(0).to_pylist() == list(range(1000))


def test_a_pinned_payload_decodes() -> None:
    """Pinned only for reading: another version of Arrow may write other bytes."""
    batch = SERIALIZER.decode_batch(PINNED.read_bytes(), 3)
    assert batch.to_pydict() == RECORD_BATCH.to_pydict()
    assert batch.schema == RECORD_BATCH.schema


def test_layouts_of_one_type_have_one_name() -> None:
    """Data frames of pandas and Polars have text in other layouts than Arrow's own arrays; a stream may mix them."""
    words = pa.array(["a", None, "a"])
    large = words.cast(pa.large_string())
    for each in (words, large, large.dictionary_encode(), words.cast(pa.string_view())):
        batch = pa.record_batch({"word": each})
        assert SERIALIZER.types_of(batch) == ("string",)
        SERIALIZER.check_keys(batch, (0,))
        keys, codes = SERIALIZER.distinct_keys(batch, (0,))
        assert [keys[code] for code in codes.tolist()] == ["a", None, "a"]
    assert SERIALIZER.types_of(pa.record_batch({"b": pa.array([b"a"], pa.large_binary())})) == ("binary",)


def _payload(batch: pa.RecordBatch, compression: str | None = None) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema, options=pa.ipc.IpcWriteOptions(compression=compression)) as writer:
        writer.write_batch(batch)
    made: bytes = sink.getvalue().to_pybytes()
    return made


@pytest.mark.parametrize(
    "array",
    [
        pa.array(["aaaa", "bbbb", "cccc"]),
        pa.array(["aaaa", "bbbb", "cccc"], pa.large_string()),
        pa.array([b"aaaa", b"bbbb", b"cccc"]),
        pa.array([[1, 2, 3, 4], [5, 6, 7, 8], [9, 10, 11, 12]]),
    ],
    ids=["text", "large-text", "bytes", "list"],
)
def test_offsets_that_lead_outside_of_a_batch_are_refused(array: pa.Array) -> None:
    """Arrow would read the memory that they name: the task died of it, or showed what is there."""
    good = _payload(pa.record_batch({"a": array}))
    code = "q" if pa.types.is_large_string(array.type) else "i"
    offsets = struct.pack(f"<4{code}", 0, 4, 8, 12)
    assert good.count(offsets) == 1
    bad = good.replace(offsets, struct.pack(f"<4{code}", 0, 2**30, 8, 12))
    with pytest.raises(SerializationError, match="not an Arrow IPC stream"):
        ArrowSerializer().decode_batch(bad, 3)
    assert ArrowSerializer().decode_batch(good, 3).num_rows == 3


@pytest.mark.parametrize("code", [-1, 2, 2**30])
def test_codes_outside_of_a_dictionary_are_refused(code: int) -> None:
    """They lead outside of its values."""
    batch = pa.record_batch({"a": pa.array(["x", "y", "x", "y", "x"]).dictionary_encode()})
    good, codes = _payload(batch), struct.pack("<5i", 0, 1, 0, 1, 0)
    assert good.count(codes) == 1
    with pytest.raises(SerializationError, match="codes"):
        ArrowSerializer().decode_batch(good.replace(codes, struct.pack("<5i", 0, code, 0, 1, 0)), 5)


@pytest.mark.parametrize("compression", ["zstd", "lz4"])
def test_a_bomb_is_refused_before_it_takes_memory(compression: str) -> None:
    """Zeros compress a thousand times, so a small segment could fill the memory of a task."""
    zeros = pa.record_batch({"a": pa.array(np.zeros(70 << 17))})
    bomb = _payload(zeros, compression)
    assert len(bomb) < zeros.nbytes / 64
    with pytest.raises(SerializationError, match=r"takes 73400320 bytes without its compression, more than 67108864"):
        ArrowSerializer().decode_batch(bomb, zeros.num_rows)
    with pytest.raises(SerializationError, match=r"set topology.columns.compression to none"):
        ArrowSerializer().encode_batch(zeros, compression)
    smaller = zeros.slice(0, 1 << 20)
    assert (
        ArrowSerializer().decode_batch(ArrowSerializer().encode_batch(smaller, compression), 1 << 20).num_rows
        == 1 << 20
    )


@pytest.mark.parametrize("length", [-(2**63), -2, 2**40, 2**63 - 1])
def test_a_compressed_buffer_whose_length_lies_is_refused(length: int) -> None:
    """Its length is the first number of the buffer."""
    batch = pa.record_batch({"a": pa.array(np.zeros(5000))})
    good, present = _payload(batch, "zstd"), struct.pack("<q", 40_000)
    assert good.count(present) >= 1
    at = good.rindex(present)
    with pytest.raises(SerializationError):
        ArrowSerializer().decode_batch(good[:at] + struct.pack("<q", length) + good[at + 8 :], 5000)
