"""Values as text: short, without secrets, and without running code of the author's classes."""

from __future__ import annotations

import datetime
import decimal
import enum
import uuid
import zoneinfo
from collections import OrderedDict, deque
from dataclasses import dataclass

import numpy as np
import pytest

from heron.driver_kit.redaction import names_secret
from heron_task_inspector.value_text import LONGEST, ValueText


@dataclass
class Order:
    number: int
    items: list[str]
    api_key: str = "0123456789"


class Slotted:
    __slots__ = ("amount", "missing")

    def __init__(self) -> None:
        self.amount = 3


class Colour(enum.IntEnum):
    RED = 4


class Loud(str):
    __slots__ = ()

    def __repr__(self) -> str:
        raise AssertionError

    __str__ = __repr__

    def __getitem__(self, key: object) -> str:
        raise AssertionError

    def __len__(self) -> int:
        raise AssertionError


class Hostile:
    """Everything that a careless observer would call raises."""

    def __init__(self) -> None:
        vars(self)["amount"] = 5

    def __repr__(self) -> str:
        raise AssertionError

    __str__ = __repr__

    def __getattribute__(self, name: str) -> object:
        if name == "__dict__":
            return object.__getattribute__(self, name)
        raise AssertionError


class OwnMeta(type):
    def __eq__(cls, other: object) -> bool:
        raise AssertionError

    __hash__ = type.__hash__


class OwnKind(metaclass=OwnMeta):
    def __init__(self) -> None:
        self.amount = 5


class OwnZone(datetime.tzinfo):
    def utcoffset(self, _at: datetime.datetime | None) -> datetime.timedelta:
        raise AssertionError

    dst = utcoffset

    def tzname(self, _at: datetime.datetime | None) -> str:
        raise AssertionError


class Disguised:
    @property
    def __dict__(self) -> dict[str, object]:  # type: ignore[override]
        raise AssertionError


class Huge(list[int]):
    def __repr__(self) -> str:
        return "x" * 10_000_000

    def __len__(self) -> int:
        raise AssertionError


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, "None"),
        (True, "True"),
        (-3, "-3"),
        (1.5, "1.5"),
        ("it's", '"it\'s"'),
        (b"\x00a", "b'\\x00a'"),
        ([1, "two", (3.0,)], "[1, 'two', (3.0)]"),
        ({"a": {"b": 1}}, "{'a': {'b': 1}}"),
        (OrderedDict(a=1), "collections.OrderedDict('a': 1)"),
        (deque([1, 2]), "collections.deque(1, 2)"),
        (datetime.date(2026, 1, 2), "2026-01-02"),
        (datetime.datetime(2026, 1, 2, tzinfo=datetime.UTC), "2026-01-02 00:00:00+00:00"),
        (datetime.datetime(2026, 1, 2, tzinfo=zoneinfo.ZoneInfo("UTC")), "2026-01-02 00:00:00+00:00"),
        (datetime.time(3, 4, tzinfo=OwnZone()), f"03:04:00 in {__name__}.OwnZone"),
        (OwnKind(), f"{__name__}.OwnKind(amount=5)"),
        (decimal.Decimal("1.50"), "1.50"),
        (uuid.UUID(int=7), "00000000-0000-0000-0000-000000000007"),
        (Colour.RED, "4"),
        (np.int64(4), "4"),
        (np.zeros((2, 3)), "<array of float64, shape (2, 3)>"),
        (Order(7, ["a"]), "Order(number=7, items=['a'], api_key=(hidden))"),
        (Slotted(), "Slotted(amount=3)"),
        ([[[[[1]]]]], "[[[[…]]]]"),
        (1 << 5_000, "<int of 5,001 bits>"),
        (object(), "object()"),
    ],
)
def test_a_value_is_shown_by_its_contents(value: object, expected: str) -> None:
    """A container by its entries, an object by its fields, an array by its shape."""
    assert ValueText().of("value", value) == expected


def test_no_method_of_the_authors_class_is_called() -> None:
    """It may raise, take minutes, or make megabytes."""
    text = ValueText()
    assert text.of("value", Loud("loud")) == "'loud'"
    assert text.of("value", Hostile()) == "Hostile(amount=5)"
    assert text.of("value", Disguised()) == "Disguised()"
    assert text.of("value", Huge([1, 2])) == f"{__name__}.Huge(1, 2)"


@pytest.mark.parametrize(
    "value", ["x" * 5_000_000, b"x" * 5_000_000, list(range(10**9, 10**9 + 1_000)), {"k" * 500: "v" * 500}]
)
def test_every_value_is_short(value: object) -> None:
    """A value of megabytes must not become a message of megabytes."""
    text = ValueText().of("value", value)
    assert len(text) == LONGEST
    assert text.endswith("…")


def test_a_long_container_says_how_much_it_leaves_out() -> None:
    """Fifteen entries are looked at, whatever their number."""
    assert ValueText().of("value", [0] * 1_000).endswith(", … 985 more]")
    assert ValueText().of("value", dict.fromkeys(range(16), 1)).endswith(", … 1 more}")


def test_secrets_are_hidden_wherever_they_are() -> None:
    """Also where only a part of one would remain after the text was cut."""
    text = ValueText(["swordfish-42", "it's a secret"])
    assert text.of("value", "take swordfish-42 now") == "'take (hidden) now'"
    assert text.of("value", ["it's a secret"]) == '["(hidden)"]'
    assert "sword" not in text.of("value", "x" * (LONGEST - 6) + "swordfish-42")
    assert text.of("value", {"user": "me", "password": "short"}) == "{'user': 'me', 'password': (hidden)}"


@pytest.mark.parametrize("name", ["password", "db_password", "API-Key", "access_token", "clientSecret"])
def test_a_field_with_the_name_of_a_secret_is_hidden(name: str) -> None:
    """The value is known to nobody but the author."""
    assert names_secret(name)
    assert ValueText().of(name, "value") == "(hidden)"
    assert not names_secret("word")


def test_a_value_that_changes_meanwhile_is_said() -> None:
    """Threads of the author may change a table at any time."""

    class Changing(dict[str, int]):
        pass

    table = Changing(a=1)

    def raising(*_: object) -> list[object]:
        msg = "dictionary changed size during iteration"
        raise RuntimeError(msg)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("heron_task_inspector.value_text.first_entries", raising)
        assert ValueText().of("value", table).startswith("<")
        assert ValueText().of("value", [table]).endswith("list, which cannot be shown: RuntimeError>")
