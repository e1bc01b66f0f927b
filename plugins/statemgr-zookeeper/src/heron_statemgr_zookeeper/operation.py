"""A znode as ZooKeeper returns it, and the operations of a transaction."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

__all__ = ["Check", "Create", "Operation", "Put", "Remove", "ZNode"]


@dataclass(frozen=True, slots=True)
class ZNode:
    """A znode. `version` counts the writes since its creation. `owner` is the session of an ephemeral znode, or 0.

    `change` is the number of the last transaction that wrote it, which is unique in the ensemble.
    """

    data: bytes
    version: int
    owner: int
    change: int


@dataclass(frozen=True, slots=True)
class Create:
    """Create a znode that must not exist. An ephemeral znode ends with the session of this process."""

    path: str
    data: bytes
    ephemeral: bool = False


@dataclass(frozen=True, slots=True)
class Put:
    """Write a znode that must have this version."""

    path: str
    data: bytes
    version: int


@dataclass(frozen=True, slots=True)
class Check:
    """Change nothing; the znode must have this version."""

    path: str
    version: int


@dataclass(frozen=True, slots=True)
class Remove:
    """Remove a znode that must have this version."""

    path: str
    version: int


Operation: TypeAlias = Create | Put | Check | Remove
