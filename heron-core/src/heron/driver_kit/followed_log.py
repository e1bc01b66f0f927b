"""Reads a log file that a process renames to ``.1``, ``.2`` when it is full, without a gap; decision 063.

A part of the log is known by its inode, whatever its name is now. The reader keeps its part open, and reads it to the
end before it goes to the next newer part.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

from heron.driver_kit.log import OLDER_FILES

__all__ = ["FollowedLog", "lock_folder"]

_Part = tuple[int, int]


class FollowedLog:
    """A log and its older parts, read from the oldest part on. Used from one thread.

    With `hold`, the reader has a shared lock on the part that it reads, so an executor does not remove the parts from
    there on (`heron.executor.child_outputs`). `gaps` counts how often parts were removed before they were read.
    """

    def __init__(self, path: Path, *, hold: bool = False) -> None:
        """Open nothing yet; the log need not exist."""
        self.path = path
        self.gaps = 0
        self._hold = hold
        self._stream: BinaryIO | None = None

    @property
    def stream(self) -> BinaryIO | None:
        """The part that is being read; None before there is one. The owner may move its position."""
        return self._stream

    def read(self, max_bytes: int) -> bytes:
        """Return the next bytes, at most `max_bytes`; empty if there are none yet. Bytes are of one part."""
        while True:
            if self._stream is not None and (data := _more(self._stream, max_bytes)):
                return data
            if not self._go_on():
                return b""

    def to_newest(self) -> None:
        """Leave out the older parts, and begin with the newest one."""
        self.close()
        self._open(self.path)

    def unread_bytes(self) -> int:
        """Return how many bytes there are to read, in this part and newer ones."""
        if self._stream is None:
            return sum(size for _, size in self._parts())
        here = os.fstat(self._stream.fileno())
        newer = 0
        for part, size in self._parts():
            if part == (here.st_dev, here.st_ino):
                break
            newer += size
        return newer + max(0, here.st_size - self._stream.tell())

    def close(self) -> None:
        """Close the file, which ends the lock; idempotent."""
        if self._stream is not None:
            self._stream.close()
            self._stream = None

    def _go_on(self) -> bool:
        """Open the next newer part; return False if there is none, and True if `read` must look again."""
        parts = [part for part, _ in self._parts()]
        if self._stream is None:
            return bool(parts) and self._open_part(parts[-1])
        here = os.fstat(self._stream.fileno())
        place = (here.st_dev, here.st_ino)
        if here.st_size > self._stream.tell():
            return True  # it was written between the read and the look at the names
        if place in parts:
            newer = parts[: parts.index(place)]
            return bool(newer) and self._open_part(newer[-1])
        if not parts:
            return False
        if not self._open_part(parts[-1]):
            return False
        self.gaps += here.st_nlink == 0 and len(parts) > OLDER_FILES
        return True

    def _parts(self) -> list[tuple[_Part, int]]:
        """The parts that exist with their sizes, the newest first.

        A part renamed meanwhile goes to a name that is looked at later, so none is missed; the last look counts.
        """
        found: dict[_Part, int] = {}
        for path in self._names():
            with suppress(OSError):
                status = path.stat()
                part = status.st_dev, status.st_ino
                found.pop(part, None)
                found[part] = status.st_size
        return list(found.items())

    def _names(self) -> Iterator[Path]:
        yield self.path
        for number in range(1, OLDER_FILES + 1):
            yield self.path.with_name(f"{self.path.name}.{number}")

    def _open_part(self, part: _Part) -> bool:
        """Go to a part by its inode; False if it has just got another name or is gone, for the next look."""
        return any(self._open(name, part) for name in self._names())

    def _open(self, name: Path, part: _Part | None = None) -> bool:
        try:
            stream = name.open("rb")
        except OSError:
            return False
        status = os.fstat(stream.fileno())
        if part is not None and part != (status.st_dev, status.st_ino):
            stream.close()
            return False
        if self._hold:
            with suppress(OSError):  # the file system has no locks
                fcntl.flock(stream.fileno(), fcntl.LOCK_SH)
        self.close()  # after the next part is locked
        self._stream = stream
        return True


def lock_folder(folder: Path) -> int:
    """Lock a log folder as a reader of all its outputs, from their beginning; return a descriptor that keeps the lock.

    Raises:
        OSError: when the folder does not exist. A file system without locks is not an error.
    """
    descriptor = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    with suppress(OSError):
        fcntl.flock(descriptor, fcntl.LOCK_SH)
    return descriptor


def _more(stream: BinaryIO, max_bytes: int) -> bytes:
    if os.fstat(stream.fileno()).st_size < stream.tell():
        stream.seek(0)  # it was emptied
    return stream.read(max_bytes)
