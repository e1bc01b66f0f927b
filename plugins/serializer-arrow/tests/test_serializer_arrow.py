"""The serializer arrow: its contract, its rows, and data frames."""

from __future__ import annotations

from pathlib import Path

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
