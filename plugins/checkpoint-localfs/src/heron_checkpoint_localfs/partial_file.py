"""Partial files: hidden files in which an object is written before a rename gives it its name.

A store holds a lock on its partial file until the rename. A partial file without a lock belongs to a process that died.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

__all__ = ["is_partial", "partial_file", "remove_abandoned"]

_MARK = ".part-"


def is_partial(name: str) -> bool:
    """Return whether a file of this name is a partial file; no object has such a name."""
    return name.startswith(".") and _MARK in name


@contextmanager
def partial_file(target: Path) -> Iterator[tuple[int, Path]]:
    """Create a locked file with mode 0600 beside `target`; afterwards remove it, if it was not renamed.

    Raises:
        OSError: when the file cannot be created, or when the block raises it.
    """
    descriptor, partial = _locked(target)
    try:
        yield descriptor, partial
    finally:
        partial.unlink(missing_ok=True)  # before the lock is released: nothing is left for others to remove
        os.close(descriptor)


def remove_abandoned(partial: Path) -> None:
    """Remove a partial file, unless its store is still at work.

    Raises:
        OSError: when it cannot be removed.
    """
    with contextlib.suppress(FileNotFoundError, BlockingIOError), partial.open("rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        partial.unlink()


def _locked(target: Path) -> tuple[int, Path]:
    while True:
        descriptor, name = tempfile.mkstemp(prefix=f".{target.name}{_MARK}", dir=target.parent)
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        if os.fstat(descriptor).st_nlink:
            return descriptor, Path(name)
        os.close(descriptor)  # another process removed the file as abandoned before it was locked
