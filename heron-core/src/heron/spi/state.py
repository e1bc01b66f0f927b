"""Contract of the state family, whose drivers hold the keyed state of a task outside its memory."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from pathlib import Path

from heron.spi.driver import Driver

__all__ = [
    "CAPABILITIES",
    "MAX_KEY_BYTES",
    "OLDEST_SPI_VERSION",
    "SPI_VERSION",
    "StateBackend",
    "StateView",
    "TaskStore",
]

SPI_VERSION = 1
OLDEST_SPI_VERSION = 1

CAPABILITIES = frozenset({"files"})
"""``files``: entries are in files of the machine that uses them."""

MAX_KEY_BYTES = 256
"""The longest key of an entry, in bytes; the core shortens longer keys."""


class StateView(ABC):
    """The entries of a `TaskStore` at one instant; later changes of the store do not change it."""

    @abstractmethod
    def scan(self, part: int) -> Iterator[tuple[bytes, bytes]]:
        """Yield each key of a part with its value, in any order; a part without entries yields nothing.

        Raises:
            KeyedStateError: when the entries cannot be read.
        """

    @abstractmethod
    def close(self) -> None:
        """Release the view. A view that is open keeps space of entries that were changed since. May be called again."""


class TaskStore(ABC):
    """The entries of one task: bytes by part and key.

    A part is a key group of one keyed state, an integer from 0 to 2**32 - 1. A key has 1 to `MAX_KEY_BYTES` bytes, a
    value any number. Only the thread that created the store calls it. `get` is on the path of tuples, so it uses no
    locks and no logging. Views need no more than one instant of the task: `view` takes less than 50 ms with 1 GB.
    """

    @abstractmethod
    def get(self, part: int, key: bytes) -> bytes | None:
        """Return the value of a key, or None.

        Raises:
            KeyedStateError: when the entry cannot be read.
        """

    @abstractmethod
    def write(self, changes: Mapping[tuple[int, bytes], bytes | None]) -> None:
        """Set the values of these parts and keys; None removes a key, and a missing key is not an error.

        After failure none of the changes is made, and a later call may succeed. Entries need not survive the process.

        Raises:
            KeyedStateError: when there is no room (the disk or a limit of the driver); names the place, the limit in
                bytes if there is one, and the remedy.
        """

    @abstractmethod
    def drop(self, part: int) -> None:
        """Remove all entries of a part.

        Raises:
            KeyedStateError: as `write`.
        """

    @abstractmethod
    def view(self) -> StateView:
        """Return the entries of this instant. The core has at most two views open at a time.

        Raises:
            KeyedStateError: when the entries cannot be read.
        """

    @abstractmethod
    def close(self) -> None:
        """Remove everything. A process that is killed does not call it, and still leaves nothing that occupies space.

        May be called again. No other method is called afterwards, also not of a view.
        """


class StateBackend(Driver):
    """Makes the stores of the tasks that a process runs.

    The stores are scratch: the truth is the checkpoint. A restart begins with an empty store, and the task fills it
    from the checkpoint. So nothing is forced to disk. Source: Flink's ``StateBackend``.
    """

    @abstractmethod
    def create(self, folder: Path) -> TaskStore:
        """Return an empty store; `folder` exists, and is for files if the options name no other place.

        Several tasks of one machine have the same folder, at the same time; each has its own entries.

        Raises:
            KeyedStateError: when the place cannot be used; names it, the reason and the remedy.
        """
