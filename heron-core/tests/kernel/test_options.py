"""Options of drivers: strict, and errors that lead to the key."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated

import msgspec
import pytest

from heron.errors import ConfigError
from heron.spi.options import decode_options


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


def test_values_and_defaults_arrive() -> None:
    """The usual case, with an int where a float is asked for, as YAML writes them."""
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
def test_error_names_key_value_and_what_is_asked(options: dict[str, object], message: str) -> None:
    """A person mends a profile by the message alone."""
    with pytest.raises(ConfigError, match=message):
        decode_options(options, Options, "x")
