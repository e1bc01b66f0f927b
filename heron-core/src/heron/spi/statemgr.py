"""Contract of the state manager family: small versioned values under eleven kinds of node.

Versions are integers that grow at each change of a node and start at 1. Nothing here is on the data path: while the
store is away, data flows on. Source: Heron's ``IStateManager``, with compare-and-set, leases and watches added.
"""

from __future__ import annotations

import enum
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, Protocol

from heron.spi.driver import Driver

__all__ = [
    "CAPABILITIES",
    "MUST_NOT_EXIST",
    "OLDEST_SPI_VERSION",
    "SPI_VERSION",
    "Hold",
    "NodeKind",
    "StateManager",
    "Versioned",
    "Watch",
]

SPI_VERSION = 1
OLDEST_SPI_VERSION = 1

CAPABILITIES = frozenset({"files", "server"})
"""``files``: nodes are files of the machine where it is used. ``server``: they are kept by one, which may be away."""

MUST_NOT_EXIST = 0
"""As `expected` of `StateManager.set`: the node must not exist yet."""


class NodeKind(enum.Enum):
    """The kinds of node; each topology has at most one node of each kind.

    A PART belongs to a value that is larger than `StateManager.max_value_bytes` and has a name of its own, which the
    engine makes up, writes once, removes, and never uses again: its versions need not grow across its removal.

    SCHEDULER_LOCATION holds a copy of EXECUTION_STATE, for when that one is damaged. A scheduler that runs a topology
    where others can see it adds there what it is called (`handle`) and pages that show it (`links`).

    The value of KEYS is secret: whoever can read it can do with the topology what its owner can. A driver lets the
    user who wrote a node read it, and nobody else who was not given access to the store.
    """

    TOPOLOGY = "topologies"
    PACKING_PLAN = "packingplans"
    PHYSICAL_PLAN = "pplans"
    EXECUTION_STATE = "executionstate"
    TMANAGER_LOCATION = "tmanagers"
    SCHEDULER_LOCATION = "schedulers"
    CHECKPOINTS = "statefulcheckpoints"
    LOCK = "locks"
    REPORT = "reports"
    KEYS = "keys"
    PART = "parts"


@dataclass(frozen=True, slots=True)
class Versioned:
    """A node's value and its version (≥ 1)."""

    value: bytes
    version: int


class Hold(Protocol):
    """A node that exists for as long as its holder lives.

    `epoch` is the node's version at the moment it was taken. It grows with every hold of that node, also across
    holders and restarts, so that a message of a former holder can be told from one of the present holder.
    """

    @property
    def epoch(self) -> int:
        """The version at which this hold was taken (≥ 1)."""
        ...

    def lost(self) -> bool:
        """Whether the hold is known to be lost; once true it stays true."""
        ...

    def release(self) -> None:
        """Gives the node up and removes it; idempotent."""
        ...


class Watch(Protocol):
    """A running watch."""

    def close(self) -> None:
        """Stops it; after this returns no further call is made. Idempotent."""
        ...


class StateManager(Driver):
    """Keeps the nodes. Thread-safe. Every method may block up to 10 s, then raises `StateUnavailableError`.

    Topology names are checked by the caller (``[A-Za-z0-9_-]``, at most 200 characters); a driver still refuses a
    name that would leave its own folder or path.
    """

    max_value_bytes: ClassVar[int | None] = None
    """The largest value the store takes (ZooKeeper: 1 MB), in bytes; None when only its space limits it.

    The engine compresses larger values, and splits them over nodes of the kind PART (`heron.driver_kit.large_values`).
    """

    @abstractmethod
    def get(self, kind: NodeKind, topology: str) -> Versioned | None:
        """The node's value, or None when there is none. Never a half-written value.

        Raises:
            StateUnavailableError: when the store does not answer: never None then, for that says that there is no node.
            StateError: when it refuses, or what is stored is garbled; names the node and the remedy.
        """

    @abstractmethod
    def set(self, kind: NodeKind, topology: str, value: bytes, *, expected: int | None = None) -> int:
        """Writes the node whole and returns its new version.

        With `expected`, only if the present version is that (`MUST_NOT_EXIST`: only if there is no node).

        Called by commands, executors and the topology manager, from any thread. After a call that was cut short the
        node has the old value or the new.

        Raises:
            StateConflictError: when `expected` does not hold; nothing was changed. Not for a change of one's own whose
                answer was lost and that was tried again: that is a success.
            StateUnavailableError: when the store does not answer; the outcome is unknown, and can be read later.
            StateError: when the store refuses (no permission, no space, larger than `max_value_bytes`); nothing was
                changed.
        """

    @abstractmethod
    def delete(self, kind: NodeKind, topology: str, *, expected: int | None = None) -> None:
        """Removes the node; one that is not there is no error. Raises as `set` does."""

    @abstractmethod
    def list(self, kind: NodeKind) -> tuple[str, ...]:
        """The names of all topologies that have a node of this kind, sorted. Raises as `get` does."""

    @abstractmethod
    def watch(self, kind: NodeKind, topology: str, on_change: Callable[[Versioned | None], None]) -> Watch:
        """Calls `on_change` with the present value now, from this thread, and again after each change.

        Later calls come from a thread of the driver, one at a time, at the latest 1 s after the change. Changes that
        follow each other quickly may be folded into the last one. A call that raises is logged and the watch goes on.
        While the store is away nothing is called (its absence is not the node's), and the watch goes on when it is
        back. `on_change` may close the watch, and may use this manager.

        Raises:
            StateError: when the node cannot be read now, as `get` does; there is no watch then.
        """

    @abstractmethod
    def hold(self, kind: NodeKind, topology: str, value: bytes) -> Hold:
        """Takes the node for as long as this process lives, or until `Hold.release`.

        The node is gone (for `get`, `list` and watchers) soon after its holder is gone, also after ``kill -9``.

        The value may be written again with `set`; the hold goes on. A hold whose node was removed, or whose session
        the store has given up, is lost.

        Raises:
            StateConflictError: when another live process holds it, or this one does.
            StateUnavailableError: when the store does not answer; if the node was taken it goes with this process.
            StateError: as `set` does.
        """

    @abstractmethod
    def close(self) -> None:
        """Releases the holds, ends the watches and closes the store. Idempotent; raises nothing.

        Called once by whoever opened it. What cannot be released because the store is away goes with the process.
        """
