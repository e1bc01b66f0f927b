"""The steps of a change, of which ZooKeeper does all or none, and what it says of a znode."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

__all__ = ["Check", "Create", "Operation", "Put", "Remove", "ZNode"]


@dataclass(frozen=True, slots=True)
class ZNode:
    """A znode; `version` counts its writes since it was made, `owner` is the session it ends with, or 0.

    `change` is the number of the transaction that wrote it last: no two changes of an ensemble have the same.
    """

    data: bytes
    version: int
    owner: int
    change: int


@dataclass(frozen=True, slots=True)
class Create:
    """Makes a znode that must not exist; an ephemeral one ends with this process's session."""

    path: str
    data: bytes
    ephemeral: bool = False


@dataclass(frozen=True, slots=True)
class Put:
    """Writes a znode that must have this version."""

    path: str
    data: bytes
    version: int


@dataclass(frozen=True, slots=True)
class Check:
    """Changes nothing; the znode must have this version."""

    path: str
    version: int


@dataclass(frozen=True, slots=True)
class Remove:
    """Removes a znode that must have this version."""

    path: str
    version: int


Operation: TypeAlias = Create | Put | Check | Remove
