"""Texts of the author's values and exceptions: bounded and never raising, whatever their classes do."""

from __future__ import annotations

import datetime
import threading
from collections import OrderedDict, deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NoReturn

import pytest

from heron.api.tuple import Tuple
from heron.author_text import error_text, named_error, short_text, traceback_text


class Meta(type):
    def __getattribute__(cls, name: str) -> object:
        raise LookupError(name)


class Hostile(metaclass=Meta):
    """Every method that a text could call raises or never returns."""

    def __repr__(self) -> NoReturn:
        raise RuntimeError

    __str__ = __len__ = __iter__ = __eq__ = __hash__ = __repr__  # type: ignore[assignment]


class Endless(list[object]):
    def __iter__(self) -> Iterator[object]:
        while True:
            yield self

    def __repr__(self) -> str:
        return "x" * 100_000_000


@dataclass
class Node:
    name: str
    to: list[Node] = field(default_factory=list)


def loop() -> Node:
    node = Node("a")
    node.to.append(node)
    return node


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (("a", 1), "('a', 1)"),
        ((1,), "(1,)"),
        (None, "None"),
        (datetime.date(2026, 1, 2), "datetime.date(2026, 1, 2)"),
        ({"a": [1.5, b"x"]}, "{'a': [1.5, b'x']}"),
        (deque([1]), "deque([1])"),
        (OrderedDict(a=1), "{'a': 1}"),
        (Hostile(), "Hostile()"),
        ([Hostile()], "[Hostile()]"),
        (Endless([1]), "[1]"),
        (loop(), "Node(name='a', to=[Node(name='a', to=[…])])"),
        ([10**5000], "[<int of 16,610 bits>]"),
        (ValueError("a"), "ValueError('a',)"),
        (threading.Lock(), "lock()"),
        (
            Tuple.source("w", "default", 1)(values=("a",)),
            "Tuple(component='w', stream='default', task=1)",
        ),
    ],
)
def test_a_value_is_shown_without_its_own_methods(value: object, text: str) -> None:
    """A `__repr__` may raise, recurse, take for ever, or make 100 MB."""
    assert short_text(value) == text


@pytest.mark.parametrize("value", ["x" * 1_000_000, [10**9] * 1_000_000, {"k" * 500: "v"}, [["y" * 100] * 50] * 50])
def test_a_large_value_is_cut(value: object) -> None:
    """A record of a megabyte must not fill the log."""
    assert len(short_text(value, 60)) == 60


class Silent(Exception):
    """Neither text works; `__str__` even exits."""

    def __str__(self) -> NoReturn:
        raise SystemExit(3)

    def __repr__(self) -> NoReturn:
        raise RuntimeError


def test_an_exception_without_text_is_named_by_its_class() -> None:
    """The failure is reported, and its own failure too."""
    assert named_error(Silent()) == "Silent: <no message: its __str__ raised SystemExit>"
    assert "Silent" in traceback_text(Silent())
    assert named_error(KeyError("a")) == "KeyError: 'a'"


def test_the_text_of_an_exception_is_cut() -> None:
    """A parser may put the whole document into its message."""
    assert len(error_text(ValueError("x" * 10_000_000))) == 2_000
    assert len(traceback_text(ValueError("x" * 10_000_000))) < 21_000


def test_what_a_class_does_not_show_is_not_shown() -> None:
    """Error texts reach logs and pages."""

    @dataclass
    class User:
        name: str
        password: str = field(repr=False)

        def __post_init__(self) -> None:
            self._token = "hunter2"

    assert short_text(User("ada", "hunter2")) == "User(name='ada')"


def test_a_value_whose_name_names_a_secret_is_hidden() -> None:
    """The names are those that hide a field of a tuple in `heron inspect`."""

    class Login:
        def __init__(self) -> None:
            self.name, self.api_key = "ada", "hunter2"

    shown = short_text({"Password": "hunter2", "login": Login()})
    assert shown == "{'Password': (hidden), 'login': Login(name='ada', api_key=(hidden))}"
