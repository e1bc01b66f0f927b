"""What a child cannot receive as it is."""

from __future__ import annotations

import datetime

import pytest

from heron.errors import SerializationError
from heron_runtime_multilang.row_check import RowCheck

GOOD = (None, True, 2**64 - 1, -(2**63), 1.5, "text", [1, ("a", {"b": [None]})])


@pytest.mark.parametrize("framing", ["json", "msgpack"])
def test_plain_values_pass(framing: str) -> None:
    """Both framings carry them as they are."""
    RowCheck(framing, 64).check(GOOD)


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (b"x", r"\[1\] of the tuple is a bytes"),
        ([{"a": b"x"}], r"\[1\]\[0\]\['a'\] of the tuple is a bytes"),
        (float("nan"), "nan, which JSON cannot carry"),
        ([float("inf")], "inf, which JSON cannot carry"),
        (2**64, "an integer of more than 64 bits"),
        ({1: 2}, "a key that is a int"),
        ({"a", "b"}, "is a set"),
        (datetime.date(2020, 1, 1), "is a date"),
        (object(), "is a object"),
    ],
)
def test_json_refuses_what_it_would_change(value: object, reason: str) -> None:
    """An encoder would turn bytes into text and NaN into null without a word."""
    with pytest.raises(SerializationError, match=reason):
        RowCheck("json", 64).check([0, value])


def test_msgpack_carries_bytes_and_nan() -> None:
    """The remedy of the error of JSON works."""
    RowCheck("msgpack", 64).check([b"x", float("nan"), [b"x"]])
    with pytest.raises(SerializationError, match="msgpack cannot carry"):
        RowCheck("msgpack", 64).check([{1, 2}])


def test_javascript_gets_no_integer_that_it_would_round() -> None:
    """A double has 53 bits for an integer."""
    check = RowCheck("json", 53).check
    check([2**53 - 1, -(2**53) + 1])
    with pytest.raises(SerializationError, match="more than 53 bits"):
        check([2**53])


def test_a_deep_value_is_refused() -> None:
    """It would end the recursion of an encoder."""
    deep: list[object] = []
    for _ in range(200):
        deep = [deep]
    with pytest.raises(SerializationError, match="nested in 100 values"):
        RowCheck("json", 64).check([deep])
