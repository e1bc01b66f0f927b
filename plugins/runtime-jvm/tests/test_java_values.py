"""Which values go to a JVM, and how Python carries those that only Java tells apart."""

from __future__ import annotations

import datetime
import pickle

import msgspec
import pytest

from heron.errors import SerializationError
from heron.planner.key_encoding import encode_key
from heron_runtime_jvm import JavaLong, JavaObject
from heron_runtime_jvm.java_values import java_value, sendable

DEEP: list[object] = []
for _ in range(200):
    DEEP = [DEEP]


@pytest.mark.parametrize(
    "value", [None, True, 0, -(2**63), 2**63 - 1, 1.5, "text", b"bytes", [1, [None]], {"a": {1: b"x"}, None: 2}]
)
def test_plain_data_is_sent_as_it_is(value: object) -> None:
    """Also inside lists and maps."""
    assert list(sendable((1, value))) == [1, value]


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (2**63, r"the value \[1\] of the tuple is an integer of more than 64 bits"),
        ([1, {"a": -(2**63) - 1}], r"the value \[1\]\[1\]\['a'\] of the tuple is an integer of more than 64 bits"),
        (datetime.date(2024, 2, 29), r"the value \[1\] of the tuple is a date, which Java cannot receive; give"),
        ({frozenset(): 1}, r"the value \[1\] of the tuple has a key that is a frozenset"),
        (DEEP, "is nested in 100 values"),
    ],
)
def test_another_value_is_refused_by_its_place(value: object, reason: str) -> None:
    """An encoder would change it without a word."""
    with pytest.raises(SerializationError, match=reason):
        sendable((1, value))


def test_values_of_java_are_carried_without_a_change() -> None:
    """They are an int and bytes for Python, also after a serializer of Heron, and go back as they came."""
    row = (JavaLong(5), JavaObject(b"\x01\x02"))
    copied = pickle.loads(pickle.dumps(row, 5))
    assert list(map(type, copied)) == [JavaLong, JavaObject]
    body = msgspec.msgpack.encode(sendable(copied))
    back = msgspec.msgpack.decode(body, ext_hook=java_value)
    assert back == [5, b"\x01\x02"]
    assert list(map(type, back)) == [JavaLong, JavaObject]


def test_values_of_java_are_keys() -> None:
    """A Long is the key of its number, as Python sends it."""
    assert encode_key((JavaLong(5),)) == encode_key((5,))
    assert encode_key((JavaObject(b"x"),)) == encode_key((b"x",))
