"""Contract of the state manager family: small versioned values under sixteen kinds of node.

The version of a node is an integer that starts at 1 and grows at each change. The state manager is not on the data
path: while the store is away, data flows. Source: Heron's ``IStateManager``, with compare-and-set, leases and watches
added.
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
"""``files``: nodes are files of the machine that uses them. ``server``: a server keeps them, and it may be away."""

MUST_NOT_EXIST = 0
"""For the argument `expected` of `StateManager.set`: the node must not exist yet."""


class NodeKind(enum.Enum):
    """The kinds of node; each topology has at most one node of each kind, except PART and CONTAINER.

    HOSTS is what a topology has measured of the hosts of its containers. HOST_BLOCKS has one node for all topologies,
    whose name the engine chooses: the hosts that schedulers avoid.

    A CONTAINER is the record of one container of a managed scheduler, or its sealed launch file; the engine makes its
    name from the run and the container's id. A JOB is the job of a managed scheduler whose cluster cannot keep it.

    A PART is a piece of a value that is larger than `StateManager.max_value_bytes`. The engine generates its name,
    writes it once, removes it and never uses the name again; so its versions need not grow across a removal.

    SCHEDULER_LOCATION holds a copy of EXECUTION_STATE, which is read when EXECUTION_STATE is damaged. If other machines
    can see the job, its scheduler adds the job's name and pages (`heron.driver_kit.scheduler_job.publish_job`).

    The value of KEYS is secret: with it a person can do everything that the owner of the topology can. A driver lets
    the user who wrote a node read it, and otherwise only users with access to the store. A driver with the capability
    ``files`` keeps it in files of mode 0600.
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
    HEALTH = "health"
    PART = "parts"
    CONTAINER = "containers"
    JOB = "jobs"
    HOSTS = "hosts"
    HOST_BLOCKS = "hostblocks"


@dataclass(frozen=True, slots=True)
class Versioned:
    """The value of a node and its version (≥ 1)."""

    value: bytes
    version: int


class Hold(Protocol):
    """A node that exists while its holder lives.

    `epoch` is the version of the node when the hold began. It grows with every hold of that node, across holders and
    restarts, so that receivers can refuse messages of a former holder.
    """

    @property
    def epoch(self) -> int:
        """The version of the node when this hold began (≥ 1)."""
        ...

    def lost(self) -> bool:
        """Whether the hold is known to be lost; it never becomes false again."""
        ...

    def release(self) -> None:
        """Remove the node and end the hold; idempotent."""
        ...


class Watch(Protocol):
    """A running watch."""

    def close(self) -> None:
        """End the watch; no call of `on_change` follows. Idempotent."""
        ...


class StateManager(Driver):
    """Stores the nodes. Thread-safe. Every method may block up to 10 s and then raises `StateUnavailableError`.

    The caller checks topology names (``[A-Za-z0-9_-]``, at most 200 characters). A driver still refuses a name that
    would lead out of its folder or path.
    """

    max_value_bytes: ClassVar[int | None] = None
    """The largest value that the store takes, in bytes (ZooKeeper: 1 MB); None without a limit.

    The engine compresses larger values and splits them over nodes of the kind PART (`heron.driver_kit.large_values`).
    A driver enforces its limit.
    """

    @abstractmethod
    def get(self, kind: NodeKind, topology: str) -> Versioned | None:
        """Return the node, or None when it does not exist; never a partly written value.

        Raises:
            StateUnavailableError: when the store does not answer. None would claim that the node does not exist.
            StateError: when the store refuses, or the stored value is garbled; names the node and the remedy.
        """

    @abstractmethod
    def set(self, kind: NodeKind, topology: str, value: bytes, *, expected: int | None = None) -> int:
        """Write the node and return its new version.

        With `expected`, write only if that is the current version (`MUST_NOT_EXIST`: only if the node does not exist).

        Commands, executors and the topology manager call it from any thread. After a call that was interrupted the node
        has the old value or the new.

        Raises:
            StateConflictError: when `expected` does not hold; nothing was changed. A driver that repeats its own write
                after a lost answer reports success, not a conflict with itself.
            StateUnavailableError: when the store does not answer; the outcome is unknown and can be read later.
            StateError: when the store refuses (no permission, no space, larger than `max_value_bytes`); nothing was
                changed.
        """

    @abstractmethod
    def delete(self, kind: NodeKind, topology: str, *, expected: int | None = None) -> None:
        """Remove the node; a missing node is not an error. Raises as `set` does."""

    @abstractmethod
    def list(self, kind: NodeKind) -> tuple[str, ...]:
        """Return the names of all topologies that have a node of this kind, sorted. Raises as `get` does."""

    @abstractmethod
    def watch(self, kind: NodeKind, topology: str, on_change: Callable[[Versioned | None], None]) -> Watch:
        """Call `on_change` with the current value now, from this thread, and again after each change.

        Later calls come from a thread of the driver, one at a time, at most 1 s after the change. Several quick changes
        may be reported as one, the last. A call that raises is logged, and the watch continues. While the store is away
        no call is made, because the node may exist; the watch continues when the store is back. `on_change` may close
        the watch and may use this state manager.

        Raises:
            StateError: as `get` does, when the node cannot be read now; then there is no watch.
        """

    @abstractmethod
    def hold(self, kind: NodeKind, topology: str, value: bytes) -> Hold:
        """Hold the node while this process lives, or until `Hold.release`.

        Soon after the holder has ended, also by ``kill -9``, the node is gone for `get`, `list` and watches.

        `set` may write a new value; the hold continues. A hold is lost when its node was removed, or when the store has
        ended its session.

        Raises:
            StateConflictError: when this or another live process holds the node.
            StateUnavailableError: when the store does not answer; a hold that was taken all the same ends with this
                process.
            StateError: as `set` does.
        """

    @abstractmethod
    def close(self) -> None:
        """Release the holds, end the watches and close the store. Idempotent; never raises.

        The process that opened it calls it once. A hold that cannot be released, because the store is away, ends with
        the process.
        """
