"""Rows to payloads and back: a bad row loses only itself, and sizes stay within their limits."""

from __future__ import annotations

import pickle

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from heron.errors import SerializationError
from heron.instance.codec.batch_codec import decode_columns, encode_rows
from heron.instance.codec.serializers import PICKLE

_PROPERTY = settings(max_examples=60)

FIELDS = ("number", "word", "third", "fourth")


class Sulking:
    """A value that does not pickle."""

    def __reduce__(self) -> str | tuple[object, ...]:
        msg = "not today"
        raise RuntimeError(msg)


class Codec:
    """Encodes with limits, and records the rejected rows."""

    def __init__(self, batch_bytes: int = 100_000, tuple_max_bytes: int = 1_000_000) -> None:
        self.batch_bytes = batch_bytes
        self.tuple_max_bytes = tuple_max_bytes
        self.rejected: list[tuple[object, str]] = []

    def encode(self, rows: list[object], arity: int) -> list[tuple[list[object], bytes]]:
        return list(
            encode_rows(
                rows,
                FIELDS[:arity],
                PICKLE,
                batch_bytes=self.batch_bytes,
                tuple_max_bytes=self.tuple_max_bytes,
                rejected=lambda row, error: self.rejected.append((row, str(error))),
            )
        )

    def round_trip(self, rows: list[object], arity: int) -> list[object]:
        found: list[object] = []
        for part, payload in self.encode(rows, arity):
            assert len(payload) <= max(2 * self.batch_bytes, self.tuple_max_bytes)
            columns = decode_columns(payload, len(part))
            found += columns[0] if arity == 1 else zip(*columns, strict=True)
        return found


@_PROPERTY
@given(st.data(), st.integers(1, 4), st.integers(40, 2000))
def test_rows_come_back_in_order_whatever_the_batch_size(data: st.DataObject, arity: int, batch_bytes: int) -> None:
    """Splitting must not lose, repeat or reorder rows."""
    values = st.one_of(st.integers(), st.text(max_size=30), st.none(), st.lists(st.integers(), max_size=3))
    row = values if arity == 1 else st.tuples(*[values] * arity)
    rows = data.draw(st.lists(row, min_size=1, max_size=40))
    assert Codec(batch_bytes).round_trip(list(rows), arity) == rows


@pytest.mark.parametrize("position", [0, 57, 99])
def test_one_unpicklable_row_among_many_is_found(position: int) -> None:
    """The other rows are encoded, and the error names the field."""
    codec = Codec()
    rows: list[object] = [(number, "x") for number in range(100)]
    bad = (position, Sulking())
    rows[position] = bad
    assert codec.round_trip(rows, 2) == [row for row in rows if row is not bad]
    ((row, error),) = codec.rejected
    assert row is bad
    assert (
        "field 'word': a value of type Sulking cannot be encoded (PickleSerializer): RuntimeError: not today" in error
    )


def test_a_row_above_the_limit_is_rejected_alone_and_in_company() -> None:
    """The limit applies to a tuple, so its neighbours must not matter."""
    for rows in (["x" * 5000], ["a", "x" * 5000, "b"]):
        for batch_bytes in (100, 100_000):
            codec = Codec(batch_bytes, tuple_max_bytes=2000)
            small = [row for row in rows if len(row) < 10]
            assert codec.round_trip(list(rows), 1) == small
            ((_, error),) = codec.rejected
            assert "exceeds heron.tuple.max.bytes, 2000 bytes" in error


def test_a_batch_much_larger_than_wanted_is_split() -> None:
    """Rows may grow from one flush to the next, and a frame has a limit."""
    codec = Codec(batch_bytes=1000)
    rows: list[object] = ["x" * 300] * 20
    parts = codec.encode([f"{number}{row}" for number, row in enumerate(rows)], 1)
    assert len(parts) > 2
    assert all(len(payload) <= 2000 for _, payload in parts)


def test_a_stream_without_fields_keeps_its_number_of_rows() -> None:
    """A signal has no values; the segment's head has the number of rows."""
    ((rows, payload),) = Codec().encode([(), ()], 0)
    assert len(rows) == 2
    assert decode_columns(payload, 2) == []


def test_a_value_that_is_emitted_twice_arrives_as_two_objects() -> None:
    """A bolt that changes a received value must not change another tuple."""
    shared = [1]
    first, second = Codec().round_trip([shared, shared], 1)
    assert first == second
    assert first is not second


def test_a_value_that_contains_itself_arrives() -> None:
    """Such a value needs a memo, so its batch is pickled with a memo."""
    cyclic: list[object] = [1]
    cyclic.append(cyclic)
    (arrived,) = Codec().round_trip([cyclic], 1)
    assert isinstance(arrived, list)
    assert arrived[1] is arrived


@pytest.mark.parametrize(
    "payload",
    [
        b"",
        b"garbage",
        pickle.dumps(5),
        pickle.dumps([5]),
        pickle.dumps([[1, 2], [3]]),
        pickle.dumps({"a": 1}),
        pickle.dumps(["ab"]),
        b"cno_such_module\nThing\n.",
    ],
)
def test_a_payload_that_is_not_a_batch_is_a_typed_error(payload: bytes) -> None:
    """The bolt counts the tuples as failed and continues."""
    with pytest.raises(SerializationError):
        decode_columns(payload, 2)


def test_every_truncated_payload_is_a_typed_error() -> None:
    """No prefix of a payload may crash the task."""
    payload = pickle.dumps([[1, 2], ["a", "b"]], 5)
    for size in range(len(payload)):
        with pytest.raises(SerializationError):
            decode_columns(payload[:size], 2)
