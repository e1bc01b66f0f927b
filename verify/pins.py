"""The pins in ``constraints.txt`` that count for a suite: of all packages that it needs, directly or in turn."""

from __future__ import annotations

import functools
import importlib.metadata
from collections.abc import Callable, Iterable

from packaging.requirements import Requirement

from verify.workspace import normalized

__all__ = ["TEST_TOOLS", "needed_pins", "read_pins", "required_by"]

TEST_TOOLS = frozenset({"hypothesis", "psutil", "pytest", "pytest-timeout"})


def read_pins(constraints: str) -> dict[str, str]:
    """The version of each package by its normalized name."""
    lines = [line.partition("#")[0].strip() for line in constraints.splitlines()]
    pairs = [line.partition("==") for line in lines if "==" in line]
    return {normalized(name): version for name, _, version in pairs}


def needed_pins(names: Iterable[str], pins: dict[str, str], required: Callable[[str], Iterable[str]]) -> dict[str, str]:
    """The pins of `names`, of `TEST_TOOLS`, and of what `required` says that these require in turn, sorted."""
    found: set[str] = set()
    waiting = {normalized(name) for name in (*names, *TEST_TOOLS)}
    while waiting:
        name = waiting.pop()
        found.add(name)
        waiting |= {normalized(each) for each in required(name)} - found
    return {name: pins[name] for name in sorted(found) if name in pins}


@functools.cache
def required_by(name: str) -> tuple[str, ...]:
    """What an installed package requires here, without extras; nothing when it is not installed."""
    try:
        lines = importlib.metadata.requires(name) or []
    except importlib.metadata.PackageNotFoundError:
        return ()
    requirements = map(Requirement, lines)
    return tuple(each.name for each in requirements if each.marker is None or each.marker.evaluate({"extra": ""}))
