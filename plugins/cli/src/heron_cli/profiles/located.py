"""Values of configuration with the place that each came from, so that an error or a listing can name it."""

from __future__ import annotations

import enum
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

__all__ = ["Layer", "Located", "Origin", "Step", "leaves", "path_text", "plain", "value_at"]

Step: TypeAlias = str | int
"""A key of a section, or a position in a list."""


class Layer(enum.Enum):
    """Who gave a value; a later one hides an earlier one."""

    DEFAULT = "default"
    FILE = "file"
    ENVIRONMENT = "environment"
    COMMAND = "command"


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a value was given: ``FILE:LINE``, the name of a variable, ``--set KEY``, or whose default it is."""

    layer: Layer
    place: str

    def __str__(self) -> str:
        return self.place


@dataclass(frozen=True, slots=True)
class Located:
    """A JSON value whose parts are located too.

    `text` is how it was written, where it came as text (a variable, ``--set``, what a reference stood for): a setting
    that is text takes this. `shown` stands for it wherever it is printed: the reference instead of what it stood for.
    """

    value: dict[str, Located] | list[Located] | str | int | float | bool | None
    origin: Origin
    text: str | None = None
    shown: str | None = None


def plain(located: Located) -> object:
    """The value without its places."""
    if isinstance(located.value, dict):
        return {key: plain(each) for key, each in located.value.items()}
    if isinstance(located.value, list):
        return [plain(each) for each in located.value]
    return located.value


def leaves(located: Located, path: tuple[Step, ...] = ()) -> Iterator[tuple[tuple[Step, ...], Located]]:
    """Everything that has no parts, with its path; an empty section or list is such a thing."""
    if isinstance(located.value, dict) and located.value:
        for key, each in located.value.items():
            yield from leaves(each, (*path, key))
    elif isinstance(located.value, list) and located.value:
        for index, each in enumerate(located.value):
            yield from leaves(each, (*path, index))
    else:
        yield path, located


def value_at(located: Located, path: Sequence[Step]) -> Located:
    """What stands at the path, or the last on the way to it that is there."""
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
