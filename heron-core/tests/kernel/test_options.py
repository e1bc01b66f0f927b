"""Options of drivers: strict types, and errors that name the key."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated

import msgspec
import pytest

from heron.errors import ConfigError
from heron.spi.driver import NoOptions
from heron.spi.options import Secret, decode_options, option_fields, option_problems


@dataclass(frozen=True)
class Inner:
    retries: int = 3


@dataclass(frozen=True)
class Options:
    root: str
    max_bytes: Annotated[int, msgspec.Meta(ge=1)] = 10
    ratio: float = 0.5
    inner: Inner = field(default_factory=Inner)
    names: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.root == "bad":
            msg = "the root is bad"
            raise ValueError(msg)


class Account(msgspec.Struct, frozen=True):
    user: str
    password: Secret = ""
    port: Annotated[int, msgspec.Meta(ge=1)] = 7


class Wide(msgspec.Struct, frozen=True):
    account: Account
    key: Secret | None = None
    hosts: tuple[str, ...] = ()
    size: int | str = msgspec.field(default_factory=lambda: 3)


def test_values_and_defaults_arrive() -> None:
    """An int is accepted for a float, because YAML writes whole numbers as ints."""
    found = decode_options({"root": "r", "ratio": 1, "inner": {"retries": 1}, "names": ["a"]}, Options, "x")
    assert found == Options("r", 10, 1.0, Inner(1), ("a",))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"rot": "r"},
            r"x\.rot: unknown key \(nearest: 'root'\); known: 'inner', 'max_bytes', 'names', 'ratio', 'root'",
        ),
        ({"root": "r", "inner": {"retry": 1}}, r"x\.inner\.retry: unknown key \(nearest: 'retries'\)"),
        ({}, r"x\.root: missing"),
        ({"root": 1}, r"x\.root: expected `str`, got `int`; it is 1"),
        ({"root": "r", "max_bytes": 0}, r"x\.max_bytes: expected `int` >= 1; it is 0"),
        ({"root": "r", "max_bytes": "10"}, r"x\.max_bytes: expected `int`, got `str`; it is '10'"),
        ({"root": "r", "inner": {"retries": 1.5}}, r"x\.inner\.retries: expected `int`, got `float`; it is 1\.5"),
        ({"root": "r", "names": ["a", 2]}, r"x\.names\[.*\]: expected `str`, got `int`"),
        ({"root": "bad"}, r"x: the root is bad"),
    ],
)
def test_error_names_key_value_and_expected_type(options: dict[str, object], message: str) -> None:
    """A person must be able to correct a profile from the message alone."""
    with pytest.raises(ConfigError, match=message):
        decode_options(options, Options, "x")


def test_options_type_may_be_a_struct() -> None:
    """The errors are the same as for a dataclass."""
    assert decode_options({"account": {"user": "u"}}, Wide, "x") == Wide(Account("u"))
    with pytest.raises(ConfigError, match=r"x\.account\.prt: unknown key \(nearest: 'port'\)"):
        decode_options({"account": {"user": "u", "prt": 1}}, Wide, "x")


def test_all_problems_are_reported() -> None:
    """A person can correct all of them at once."""
    options = {"account": {"usr": "u", "port": 0}, "hosts": [1], "sise": 3, "size": None}
    found = {".".join(map(str, each.path)): each.text for each in option_problems(options, Wide)}
    assert sorted(found) == ["account.port", "account.user", "account.usr", "hosts.0", "sise", "size"]
    assert found["account.user"] == "missing; give it a value"
    assert option_problems({"account": {"user": "u"}}, Wide) == ()


@pytest.mark.parametrize("options", [{"account": {"user": "u", "password": 4711}}, {"key": [4711], "account": {}}])
def test_secret_of_the_wrong_type_is_not_shown(options: dict[str, object]) -> None:
    """A common mistake is a password of digits, which YAML reads as a number."""
    with pytest.raises(ConfigError, match=r"expected `str.*; its value is not shown") as caught:
        decode_options(options, Wide, "x")
    assert "4711" not in str(caught.value)


def test_fields_have_defaults_and_kinds() -> None:
    """Commands list defaults, hide secrets, and do not convert the values of text fields to numbers."""
    fields = {each.name: each for each in option_fields(Wide)}
    assert [(each.name, each.required) for each in fields.values()] == [
        ("account", True),
        ("key", False),
        ("hosts", False),
        ("size", False),
    ]
    assert (fields["hosts"].default, fields["size"].default) == ([], 3)
    assert (fields["account"].schema, fields["key"].schema) == (Account, None)
    assert [each.secret for each in fields.values()] == [False, True, False, False]
    assert [each.is_text for each in fields.values()] == [False, True, False, False]
    assert option_fields(NoOptions) == ()
    inner = {each.name: each.default for each in option_fields(Options)}
    assert inner == {"root": None, "max_bytes": 10, "ratio": 0.5, "inner": {"retries": 3}, "names": []}
