"""Values of configuration, each with the place where it was given, so an error or a listing can name it."""

from __future__ import annotations

import enum
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

__all__ = ["Layer", "Located", "Origin", "Step", "leaves", "path_text", "plain", "value_at"]

Step: TypeAlias = str | int
"""A key of a section, or a position in a list."""


class Layer(enum.Enum):
    """The layer that gave a value; a later layer hides an earlier one."""

    DEFAULT = "default"
    FILE = "file"
    ENVIRONMENT = "environment"
    COMMAND = "command"


@dataclass(frozen=True, slots=True)
class Origin:
    """The place where a value was given: ``FILE:LINE``, a variable, ``--set KEY``, or the owner of a default."""

    layer: Layer
    place: str

    def __str__(self) -> str:
        return self.place


@dataclass(frozen=True, slots=True)
class Located:
    """A JSON value whose parts are located too.

    `text` is the value as written, when it came as text (a variable, ``--set``, a resolved reference). A setting of
    type text uses it. `shown` is printed instead of the value: the reference instead of what it refers to.
    """

    value: dict[str, Located] | list[Located] | str | int | float | bool | None
    origin: Origin
    text: str | None = None
    shown: str | None = None


def plain(located: Located) -> object:
    """Return the value without its places."""
    if isinstance(located.value, dict):
        return {key: plain(each) for key, each in located.value.items()}
    if isinstance(located.value, list):
        return [plain(each) for each in located.value]
    return located.value


def leaves(located: Located, path: tuple[Step, ...] = ()) -> Iterator[tuple[tuple[Step, ...], Located]]:
    """Yield each value that has no parts, with its path. An empty section or list has no parts."""
    if isinstance(located.value, dict) and located.value:
        for key, each in located.value.items():
            yield from leaves(each, (*path, key))
    elif isinstance(located.value, list) and located.value:
        for index, each in enumerate(located.value):
            yield from leaves(each, (*path, index))
    else:
        yield path, located


def value_at(located: Located, path: Sequence[Step]) -> Located:
    """Return the value at the path, or the deepest existing value on the way to it."""
    for step in path:
        parts: dict[Step, Located] = {}
        if isinstance(located.value, dict):
            parts = {key: each for key, each in located.value.items()}  # noqa: C416 - widens the type of the keys
        elif isinstance(located.value, list):
            parts = dict(enumerate(located.value))
        if step not in parts:
            break
        located = parts[step]
    return located


def path_text(path: Sequence[Step]) -> str:
    """``metricsink[0].directory``."""
    return "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path).removeprefix(".")
