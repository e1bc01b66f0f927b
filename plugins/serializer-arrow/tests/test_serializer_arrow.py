"""The serializer arrow: its contract, its rows, and data frames."""

from __future__ import annotations

import pyarrow as pa
import pytest

from heron.errors import SerializationError
from heron.instance.batch_codec import decode_columns
from heron_serializer_arrow import ArrowSerializer
from heron_testing.contracts.column_serializer import ColumnSerializerContract
from heron_testing.contracts.serializer import same

SERIALIZER = ArrowSerializer.open({})


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
    """Any Arrow reader reads it; a batch refers to the frame that it arrived in."""
    payload = SERIALIZER.encode_batch(pa.record_batch({"n": pa.array(range(1000))}))
    assert pa.ipc.open_stream(payload).read_all().to_pydict() == {"n": list(range(1000))}
    frame = memoryview(b"head....." + payload + b"tail")[9:-4]
    allocated = pa.total_allocated_bytes()
    batch = SERIALIZER.decode_batch(frame, 1000)
    assert pa.total_allocated_bytes() - allocated < 1000
    assert batch.column(0).to_pylist() == list(range(1000))
