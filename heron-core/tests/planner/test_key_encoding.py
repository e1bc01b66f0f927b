"""Equal keys have equal bytes, and different keys have different bytes. The placement of keyed state depends on it."""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Callable
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal, FloatOperation, localcontext
from enum import IntEnum
from pathlib import Path
from typing import NamedTuple
from uuid import UUID
from zoneinfo import ZoneInfo

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from xxhash import xxh3_64_hexdigest

from heron.errors import EmitError
from heron.planner.key_encoding import MAX_DEPTH, encode_key
from heron.planner.key_group import key_group

_VECTORS = json.loads(Path(__file__).with_name("golden").joinpath("key_groups.json").read_text("utf-8"))["vectors"]
_PROPERTY = settings(max_examples=300)

_READERS: dict[str, Callable[..., object]] = {
    "none": lambda _: None,
    "bool": bool,
    "int": int,
    "float": float,
    "decimal": Decimal,
    "str": str,
    "bytes": bytes.fromhex,
    "date": date.fromisoformat,
    "datetime": datetime.fromisoformat,
    "uuid": UUID,
    "tuple": lambda values: tuple(_read(value) for value in values),
}

_INTEGERS = st.integers() | st.integers(-3, 3) | st.sampled_from([2**53 + 1, 2**63 - 1, 2**63, -(2**63) - 1, 10**25])
_NUMBERS = (
    st.booleans()
    | _INTEGERS
    | st.floats(allow_nan=False)
    | _INTEGERS.filter(lambda value: abs(value) < 10**300).map(float)
    | st.decimals(allow_nan=False)
    | _INTEGERS.map(Decimal)
    | st.floats(allow_nan=False).map(Decimal)
)
_VALUES = st.recursive(
    st.none()
    | _NUMBERS
    | st.text()
    | st.binary()
    | st.dates()
    | st.datetimes(timezones=st.none() | st.timezones())
    | st.uuids(),
    lambda values: st.lists(values, max_size=3).map(tuple),
    max_leaves=5,
)


def _read(spelt: dict[str, object]) -> object:
    ((kind, value),) = spelt.items()
    return _READERS[kind](value)


@pytest.mark.parametrize("vector", _VECTORS, ids=lambda vector: vector["what"])
def test_encodes_as_documented(vector: dict[str, object]) -> None:
    """The golden file is a contract with other languages and with stored state: it may grow, but not change."""
    spelt = vector["key"]
    assert isinstance(spelt, list)
    key = tuple(_read(each) for each in spelt)
    assert encode_key(key).hex() == vector["encoding"]
    assert xxh3_64_hexdigest(encode_key(key)) == vector["xxh3_64"]
    assert key_group(key, 1024) == vector["group_of_1024"]


def test_encodes_as_specified() -> None:
    """The expected bytes are written by hand, so an error in the code cannot also be in the expectation."""
    assert encode_key((None, 7, "ü")) == b"n" + b"i\x07\0\0\0\0\0\0\0" + b"s\x02\0\0\0\0\0\0\0\xc3\xbc"
    assert encode_key((0.5,)) == b"f" + struct.pack("<d", 0.5)
    assert encode_key((Decimal("0.30"),)) == b"d\x04\0\0\0\0\0\0\0" + b"3E-1"
    assert encode_key((date(1970, 1, 3),)) == b"D\x02\0\0\0\0\0\0\0"
    assert encode_key(((b"x",),)) == b"(\x01\0\0\0\0\0\0\0" + b"b\x01\0\0\0\0\0\0\0x"


@_PROPERTY
@given(left=_NUMBERS, right=_NUMBERS)
@example(left=2**63, right=2.0**63)
@example(left=2**53 + 1, right=2.0**53)
@example(left=Decimal("1E+400"), right=10**400)
@example(left=Decimal("0E+900000"), right=-0.0)
@example(left=Decimal("9223372036854775807.0"), right=2**63 - 1)
def test_numbers_encode_alike_exactly_when_equal(left: object, right: object) -> None:
    """1, 1.0, True and Decimal(1) are one key of a dict and also one key of a grouping."""
    assert (encode_key((left,)) == encode_key((right,))) == (left == right)


@_PROPERTY
@given(number=st.integers() | st.floats(allow_nan=False, allow_infinity=False))
def test_a_number_encodes_alike_in_every_type(number: float) -> None:
    """Random pairs are rarely equal, so this test converts one number to each type."""
    encoded = encode_key((number,))
    assert encode_key((Decimal(number),)) == encoded
    if number == int(number):
        assert encode_key((int(number),)) == encoded
    if abs(number) < 10**300 and float(number) == number:
        assert encode_key((float(number),)) == encoded


@_PROPERTY
@given(left=_VALUES, right=_VALUES)
def test_values_encode_alike_exactly_when_equal(left: object, right: object) -> None:
    """A string never equals a number, a naive time never an aware one, a date never a datetime."""
    assert (encode_key((left,)) == encode_key((right,))) == (left == right)


@_PROPERTY
@given(values=st.lists(_VALUES, min_size=2, max_size=3), at=st.integers(1, 2))
def test_a_key_has_the_bytes_of_its_values_in_order(values: list[object], at: int) -> None:
    """The encoding of a value does not depend on its neighbours."""
    assert encode_key(tuple(values[:at])) + encode_key(tuple(values[at:])) == encode_key(tuple(values))


def test_all_nans_are_one_key() -> None:
    """A NaN is not equal to itself, but all tuples with NaN must go to one task."""
    nans = [math.nan, -math.nan, Decimal("NaN"), Decimal("-NaN12"), Decimal("sNaN")]
    nans.append(struct.unpack("<d", bytes.fromhex("010000000000f87f"))[0])
    assert len({encode_key((each,)) for each in nans}) == 1


def test_equal_instants_are_one_key_in_every_zone() -> None:
    """A datetime with a zone is an instant. The same datetime without a zone is a different key."""
    here = datetime(2024, 7, 1, 12, tzinfo=ZoneInfo("Europe/Zurich"))
    there = here.astimezone(timezone(timedelta(hours=-9, minutes=-30)))
    assert encode_key((here,)) == encode_key((there,)) != encode_key((here.replace(tzinfo=None),))


def test_both_passes_of_a_repeated_hour_are_one_key() -> None:
    """Python treats them as equal with equal hashes, so a cache of keys cannot tell them apart."""
    first = datetime(2024, 10, 27, 2, 30, tzinfo=ZoneInfo("Europe/Zurich"))
    second = first.replace(fold=1)
    assert first == second
    assert encode_key((first,)) == encode_key((second,))


def test_the_first_and_last_datetimes_have_bytes() -> None:
    """An offset can lead to a year that a datetime cannot represent; the encoder must not fail there."""
    east, west = timezone(timedelta(hours=14)), timezone(timedelta(hours=-12))
    assert encode_key((datetime.min.replace(tzinfo=east),)) != encode_key((datetime.max.replace(tzinfo=west),))


def test_extreme_decimals_cost_no_memory() -> None:
    """A Decimal with a huge exponent must not expand to gigabytes of digits."""
    assert encode_key((Decimal("1E+999999999999999999"),)).endswith(b"1E999999999999999999")
    assert encode_key((Decimal("-1E-999999999999999999"),)).endswith(b"-1E-999999999999999999")


def test_integers_beyond_the_limit_of_int_to_text_have_bytes() -> None:
    """Python does not convert an int of more than 4,300 digits to a string, but it is a valid key."""
    assert encode_key((10**5000 + 1,)) == encode_key((Decimal(10**5000 + 1),))


def test_the_bytes_do_not_depend_on_the_decimal_context() -> None:
    """User code may change precision and traps."""
    number = Decimal("3.1415926535897932384626433832795")
    with localcontext() as context:
        expected = encode_key((number, Decimal("1.5"), 10**30 + 1))
        context.prec = 3
        context.traps[FloatOperation] = True
        assert encode_key((number, Decimal("1.5"), 10**30 + 1)) == expected


def test_a_lone_surrogate_has_bytes() -> None:
    """File names may contain lone surrogates. Different strings are different keys."""
    assert encode_key(("\ud800",)) == b"s\x03\0\0\0\0\0\0\0\xed\xa0\x80"


class _Colour(IntEnum):
    RED = 1


class _Point(NamedTuple):
    x: int


class _Word(str):
    __slots__ = ()


class _Bytes(bytes):
    __slots__ = ()


class _Real(float):
    __slots__ = ()


class _Amount(Decimal):
    __slots__ = ()


class _Day(date):
    __slots__ = ()


class _Moment(datetime):
    __slots__ = ()


class _Id(UUID):
    __slots__ = ()


_NOW = datetime(2026, 7, 1, 12, 30, 1, 7, tzinfo=ZoneInfo("Europe/Zurich"))


@pytest.mark.parametrize(
    ("value", "plain"),
    [
        (_Colour.RED, 1),
        (_Point(1), (1,)),
        (_Word("a"), "a"),
        (_Bytes(b"a"), b"a"),
        (_Real(0.1), 0.1),
        (_Real("nan"), math.nan),
        (_Amount("1.10"), Decimal("1.1")),
        (_Day(2026, 7, 1), date(2026, 7, 1)),
        (_Moment.fromtimestamp(_NOW.timestamp(), _NOW.tzinfo), _NOW),
        (_Id(int=7), UUID(int=7)),
        (("x", (_Word("a"), _Point(1))), ("x", ("a", (1,)))),
    ],
    ids=repr,
)
def test_a_value_of_a_subclass_is_the_key_that_it_equals(value: object, plain: object) -> None:
    """A cache of keys finds it as the plain value, so it must have the same bytes where no cache knows it."""
    assert encode_key((value,)) == encode_key((plain,))


class _AnyCase(str):
    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, str) and self.lower() == other.lower()

    def __hash__(self) -> int:
        return hash(self.lower())


class _Hashless(str):
    __slots__ = ()
    __hash__ = None  # type: ignore[assignment]  # as when only `__eq__` is defined


class _Never(int):
    def __eq__(self, other: object) -> bool:
        raise RuntimeError(other)

    def __hash__(self) -> int:
        return int(self)


class _Pretender:
    @property  # type: ignore[misc]  # a proxy does this
    def __class__(self) -> type:
        return str


@pytest.mark.parametrize("value", [_AnyCase("A"), _Hashless("a"), _Never(1)])
def test_refuses_a_subclass_with_an_equality_of_its_own(value: object) -> None:
    """Its equality and the bytes would disagree about which keys are one."""
    with pytest.raises(EmitError, match=rf"{type(value).__name__} and does not compare or hash as (str|int) does"):
        encode_key((value,))


@pytest.mark.parametrize(
    "value",
    [[1], {}, {1}, 1j, bytearray(b"x"), object(), timedelta(1), range(3), pytest.param(_Pretender(), id="proxy")],
)
def test_refuses_every_other_type(value: object) -> None:
    """Nothing says which of their values are one key."""
    with pytest.raises(EmitError, match=rf"key value 2 of 2 is of type {type(value).__qualname__}"):
        encode_key(("word", value))


def test_refuses_another_type_inside_a_tuple() -> None:
    """The message gives no position, because the value is not a field of the grouping."""
    with pytest.raises(EmitError, match="inside a tuple of the key is of type list"):
        encode_key((("word", [1]),))


def test_refuses_deeply_nested_tuples() -> None:
    """The error is an `EmitError`, not a RecursionError."""
    value: tuple[object, ...] = ()
    for _ in range(MAX_DEPTH - 1):
        value = (value,)
    assert encode_key((value,)).startswith(b"(")
    with pytest.raises(EmitError, match="deeper than 32"):
        encode_key(((value,),))
