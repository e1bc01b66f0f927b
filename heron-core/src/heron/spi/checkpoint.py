"""Contract of the checkpoint family, which stores the state of running topologies."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass

from heron.spi.driver import Driver

__all__ = ["CAPABILITIES", "OLDEST_SPI_VERSION", "SPI_VERSION", "CheckpointStore", "StoredObject"]

SPI_VERSION = 1
OLDEST_SPI_VERSION = 1

CAPABILITIES = frozenset({"files", "server", "shared"})
"""``shared``: every host can load what one host stored. ``files``: objects are files of the machine that uses them.
``server``: a server keeps them, and it may be away."""


@dataclass(frozen=True, slots=True)
class StoredObject:
    """An object in the list of `CheckpointStore.list`."""

    name: str
    size_bytes: int
    age_s: float
    """Seconds since it was stored. Both times come from the clock of the store."""


class CheckpointStore(Driver):
    """Stores immutable objects under names that look like paths: ``TOPOLOGY/RUN/0000000012/task-3``.

    A name has two to six parts of letters, digits, ``_``, ``-`` and inner dots, separated by ``/``; each part has at
    most 200 characters. Any other name is refused with a `CheckpointError`; `heron_driver_kit.checkpoint_names` checks
    names. No name begins with the parts of another name (``a/b`` and ``a/b/c``), so a name can be a path.

    Every task of a topology opens its own store and calls it from one thread, which may be another one than the thread
    that opened it. A call may block while bytes move, and at most 30 s without progress. Several processes store
    objects at the same time, but never two processes the same name, except after a process was declared dead: then the
    last `store` that ends wins. Source: Heron's ``IStatefulStorage``.
    """

    @abstractmethod
    def store(self, name: str, data: bytes) -> None:
        """Store the object; it replaces an object of the same name.

        After success the object is durable and complete. After failure, or if the process dies, there is no object of
        this name, the former one, or the new one: never a part of an object. Remains of failed calls are not listed and
        cannot be loaded. A later `store` below the same parent, or a later `dispose` of any object of the same run,
        removes them; a store without that ability says in its README how they are removed.

        Raises:
            CheckpointError: when it cannot be stored (the disk is full, the server refuses or does not answer); names
                the place, the reason and the remedy.
        """

    @abstractmethod
    def load(self, name: str, start: int = 0, size_bytes: int | None = None) -> bytes:
        """Return the object from the offset `start` on: all of it, or `size_bytes` of it.

        The bytes are from one `store`, also when another `store` replaces the object meanwhile.

        Raises:
            CheckpointError: when the object does not exist, when it is shorter than ``start + size_bytes``, when a
                number is negative, or when the object cannot be read.
        """

    @abstractmethod
    def list(self, prefix: str) -> tuple[StoredObject, ...]:
        """Return all objects below ``prefix/``, in the order of their names; an unknown prefix has no objects.

        `prefix` is one to five parts of a name: ``TOPOLOGY``, ``TOPOLOGY/RUN``. An object that is stored or disposed
        meanwhile may be in the list or not.

        Raises:
            CheckpointError: when the store cannot list.
        """

    @abstractmethod
    def dispose(self, names: Iterable[str]) -> None:
        """Remove these objects; a missing object is not an error. Empty parents are removed too, where there are any.

        The names may be of several topologies, and come from an iterator that is read once.

        Raises:
            CheckpointError: when an object cannot be removed; the others may be removed already.
        """
