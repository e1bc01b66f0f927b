"""The serializer ``plain``: one scalar type in each field, unchanged or refused."""

from __future__ import annotations

import enum
import math
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heron.errors import SerializationError
from heron.instance.codec.batch_codec import decode_columns
from heron.instance.codec.plain import PlainSerializer, check_shape
from heron_testing.contracts.driver import DriverContract
from heron_testing.contracts.serializer import same

PLAIN = PlainSerializer.open({})

SCALARS = (
    st.booleans(),
    st.integers(-(2**63), 2**63 - 1),
    st.floats(),
    st.text(st.characters(exclude_categories=["Cs"])),
    st.binary(),
    st.none(),
)


class TestContract(DriverContract):
    """plain is found, described and checked like any other driver."""

    family = "serializer"
    name = "plain"
    driver_class = PlainSerializer


@given(data=st.data(), rows=st.integers(1, 12), fields=st.integers(0, 4))
def test_columns_of_one_type_arrive_as_they_were(data: st.DataObject, rows: int, fields: int) -> None:
    """With None anywhere, and texts that contain the separator."""
    columns: list[list[object]] = []
    for _ in range(fields):
        values = data.draw(st.sampled_from(SCALARS))
        drawn = st.none() | values if data.draw(st.booleans()) else values
        columns.append(data.draw(st.lists(drawn, min_size=rows, max_size=rows)))
    for kind in (list, tuple):
        payload = PLAIN.encode([kind(column) for column in columns])
        found = decode_columns(payload, rows, PLAIN)
        if fields:
            check_shape(payload, rows, fields)
        assert len(found) == fields
        for sent, arrived in zip(columns, found, strict=True):
            assert all(map(same, sent, arrived))
        with pytest.raises(SerializationError):
            PLAIN.decode(payload + b"\0")


class Number(enum.IntEnum):
    """Would arrive as an int."""

    ONE = 1


class Text(str):
    """Would arrive as a str."""

    __slots__ = ()


@pytest.mark.parametrize(
    "column",
    [
        *[(1, True), (1, 1.0), ("a", b"a"), (Number.ONE,), (Text("a"),), ("a", Text("a")), (2**63,), (-(2**63) - 1,)],
        *[([1],), ({},), ((1,),), (...,), ("\ud800",), (bytearray(b"a"),), (None, 1, "a")],
    ],
    ids=repr,
)
def test_what_would_arrive_changed_is_refused(column: tuple[object, ...]) -> None:
    """The engine then halves the batch: values of two types in a field may each travel alone."""
    with pytest.raises(SerializationError):
        PLAIN.encode([column])


def test_the_error_names_the_types_and_the_remedy() -> None:
    """Types of one field."""
    with pytest.raises(SerializationError, match="values of float, int; a field of a batch has one type here"):
        PLAIN.encode([["a", "b"], [1, 1.5]])


def test_every_cut_payload_is_an_error() -> None:
    """At any byte."""
    payload = PLAIN.encode(COLUMNS)
    for size in range(len(payload)):
        with pytest.raises(SerializationError):
            decode_columns(payload[:size], 3, PLAIN)
        with pytest.raises(SerializationError):
            check_shape(memoryview(payload)[:size], 3, len(COLUMNS))


@pytest.mark.parametrize(
    ("at", "value", "reason"),
    [
        (0, 2, "a payload of 2 rows and 7 plain columns; expected 3 rows and 7 columns"),
        (6, 7, "column 0, at byte 6 of 141, is no plain column of 3 rows"),  # an unknown kind
        (8, 4, "column 1, "),  # a shorter text, so that another column follows
        (8, 0, "column 0, "),  # two texts need a separator
        (8, 231, "column 0, "),  # behind the end
        (12, 2, "column 0, "),  # neither None nor a value
        (22, 23, "column 1, "),  # three ints have 24 bytes
    ],
)
def test_a_wrong_column_is_seen_without_its_values(at: int, value: int, reason: str) -> None:
    """A program that receives the payload may read behind its end."""
    payload = bytearray(PLAIN.encode(COLUMNS))
    assert payload[at] != value
    payload[at] = value
    with pytest.raises(SerializationError, match=reason):
        check_shape(bytes(payload), 3, len(COLUMNS))


@given(head=st.sampled_from([b"", b"\2\0\0\0\1\0"]), rest=st.binary(max_size=60))
def test_the_check_of_a_shape_refuses_no_payload_that_decodes(head: bytes, rest: bytes) -> None:
    """And what it accepts decodes, but for its texts."""
    payload = head + rest
    rows, columns = int.from_bytes(payload[:4], "little"), int.from_bytes(payload[4:6], "little")
    try:
        PLAIN.decode(payload)
    except SerializationError:
        return
    check_shape(payload, rows, columns)


@given(head=st.sampled_from([b"", b"\2\0\0\0\1\0", b"\xff\xff\xff\xff\1\0\0\1"]), rest=st.binary(max_size=60))
def test_rubbish_is_an_error_and_takes_no_memory(head: bytes, rest: bytes) -> None:
    """Programs in other languages write it; a mistake there costs one batch."""
    try:
        found = PLAIN.decode(head + rest)
    except SerializationError:
        return
    assert all(len(column) <= 60 for column in found)


def test_the_bytes_never_change() -> None:
    """The sample of WIRE.md, which a program in another language writes too."""
    assert PLAIN.encode(COLUMNS).hex() == PINNED


COLUMNS: list[Sequence[object]] = [
    ["to", None, "be"],
    [1, -2, 3],
    [math.pi, 0.0, -1.0],
    [True, False, True],
    ["a\0", "", "ü"],
    [b"\0", b"", b"ab"],
    [None] * 3,
]

PINNED = (
    "030000000700040105000000010001746f0062650200180000000100000000000000feffffffffffffff0300000000000000"
    "030018000000182d4454fb2109400000000000000000000000000000f0bf0100030000000100010500100000000200000000"
    "000000020000006100c3bc06000f000000010000000000000002000000006162000100000000000000"
)
