"""The serializer msgpack: its contract and its bytes."""

from __future__ import annotations

import datetime
import decimal
import uuid
from zoneinfo import ZoneInfo

import msgpack
import pytest

from heron.author_text import traceback_text
from heron.errors import SerializationError
from heron.instance.codec.batch_codec import decode_columns, decode_values
from heron.spi.serializer import UndecodableValue
from heron_serializer_msgpack import MsgpackSerializer
from heron_testing.contracts.serializer import SerializerContract, same

SERIALIZER = MsgpackSerializer.open({})


class TestContract(SerializerContract):
    """The serializer meets the contract of the family."""

    name = "msgpack"
    driver_class = MsgpackSerializer


@pytest.mark.parametrize(
    "value",
    [
        (1, ("two", [3])),
        {"pairs": {(1, 2): {3, 4}}},
        frozenset({b"a"}),
        2**64,
        -(10**2000),
        decimal.Decimal("-0.100"),
        decimal.Decimal("sNaN"),
        datetime.date(1, 1, 1),
        datetime.datetime(2024, 2, 29, 23, 59, 59, 1),  # noqa: DTZ001  # without a zone on purpose
        datetime.datetime(2024, 2, 29, tzinfo=datetime.timezone(datetime.timedelta(seconds=-3661))),
        datetime.datetime(2024, 7, 1, tzinfo=ZoneInfo("Etc/GMT-2")),
        uuid.UUID(int=2**127),
    ],
    ids=lambda value: type(value).__name__,
)
def test_values_of_all_types_of_keys_arrive_unchanged(value: object) -> None:
    """Each serializer must support every type that the key of a grouping can have."""
    ((arrived,),) = SERIALIZER.decode(SERIALIZER.encode([[value]]))
    assert same(value, arrived)


def test_plain_batch_is_plain_messagepack() -> None:
    """A program in another language needs only a MessagePack library to read the columns."""
    payload = SERIALIZER.encode([("a", "b"), (1, None)])
    assert payload == msgpack.packb([["a", "b"], [1, None]])


@pytest.mark.parametrize(
    ("value", "code", "data"),
    [
        ((1,), 1, b"\x91\x01"),
        (-(2**64), 2, b"-10000000000000000"),
        (decimal.Decimal("1.10"), 3, b"1.10"),
        (datetime.date(2024, 2, 29), 4, b"2024-02-29"),
        (datetime.datetime(2024, 2, 29, 1, 2, 3, tzinfo=datetime.UTC), 5, b"2024-02-29T01:02:03+00:00"),
        (uuid.UUID(int=1), 6, b"\0" * 15 + b"\1"),
        ({5}, 7, b"\x91\x05"),
        (frozenset({5}), 8, b"\x91\x05"),
    ],
)
def test_extension_types_are_pinned(value: object, code: int, data: bytes) -> None:
    """Other programs and later versions read these bytes."""
    assert SERIALIZER.encode([[value]]) == msgpack.packb([[msgpack.ExtType(code, data)]])


@pytest.mark.parametrize(
    ("value", "why"),
    [
        (object(), "no type for object"),
        (print, "no type for builtin_function_or_method"),
        ({"a": [1 + 2j]}, "no type for complex"),
        (datetime.timedelta(1), "no type for timedelta"),
        (datetime.datetime(2024, 10, 27, 2, 30, fold=1), "fold=1"),  # noqa: DTZ001
    ],
)
def test_error_names_the_fault_of_the_value(value: object, why: str) -> None:
    """The engine adds the field and the value to the message."""
    with pytest.raises(SerializationError, match=why):
        SERIALIZER.encode([[value]])


@pytest.mark.parametrize("code", [2, 3, 4, 5, 6])
def test_a_damaged_value_is_not_in_its_error(code: int) -> None:
    """Another program may have written a password there."""
    secret = "-".join(("hunter2", "of", "ada"))
    payload = msgpack.packb([[msgpack.ExtType(code, secret.encode())]])
    with pytest.raises(SerializationError, match=f"14 bytes of extension type {code} are no value") as caught:
        SERIALIZER.decode(payload)
    assert secret not in traceback_text(caught.value)


def test_unknown_extension_is_an_error() -> None:
    """A later version can have more types; their bytes must not arrive as a value."""
    payload = msgpack.packb([[msgpack.ExtType(77, b"")]])
    with pytest.raises(SerializationError, match="extension type 77"):
        SERIALIZER.decode(payload)


@pytest.mark.parametrize(
    ("bad", "kind"),
    [
        (b"\xa4\xff\xfe!!", "text"),
        (b"\x91\xa4\xff\xfe!!", "array"),
        (b"\x81\xa1k\xa4\xff\xfe!!", "map"),
        (b"\xd6\x63BAD!", "extension"),
    ],
)
def test_a_value_of_another_program_that_cannot_be_unpacked_fails_alone(bad: bytes, kind: str) -> None:
    """Text that is not UTF-8, or an extension type that nobody knows."""
    rows = 2500
    payload = SERIALIZER.encode([list(range(rows)), [(1, "two")] * (rows - 1) + ["LAST"]])
    payload = payload.replace(b"\xa4LAST", bad)
    with pytest.raises(SerializationError):
        decode_columns(payload, rows, SERIALIZER)
    numbers, values = decode_values(payload, rows, SERIALIZER)
    assert numbers == list(range(rows))
    assert values[:-1] == [(1, "two")] * (rows - 1)
    assert isinstance(values[-1], UndecodableValue)
    assert values[-1].kind == kind


def test_a_payload_that_is_cut_is_lost_whole() -> None:
    """Nothing says then where its values end."""
    payload = SERIALIZER.encode([[1, "two"], [b"x", {"a": [1.5]}]])
    for size in range(len(payload)):
        with pytest.raises(SerializationError):
            decode_values(payload[:size], 2, SERIALIZER)
