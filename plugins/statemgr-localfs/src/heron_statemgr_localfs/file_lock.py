"""Locks on files (``flock``). The kernel releases a lock when its process ends, for whatever reason."""

from __future__ import annotations

import fcntl
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from heron import clock
from heron.errors import StateUnavailableError

__all__ = ["LOCK_TIMEOUT_S", "exclusive", "try_exclusive"]

LOCK_TIMEOUT_S = 10.0
"""The longest wait for the write lock of a node: the contract lets a call block for 10 s."""

_RETRY_S = 0.002  # a write holds the lock for a shorter time, unless its value is large


@contextmanager
def exclusive(path: Path) -> Iterator[int]:
    """Hold the lock of a file during the block and yield its descriptor; create the file if it does not exist.

    The lock belongs to the open file, so it also excludes other threads of this process.

    Raises:
        OSError: when the file cannot be opened.
        StateUnavailableError: when the lock is not free within `LOCK_TIMEOUT_S`.
    """
    descriptor = _open(path)
    try:
        deadline_s = clock.monotonic_s() + LOCK_TIMEOUT_S
        pause = threading.Event()
        while not _locked(descriptor):
            if clock.monotonic_s() > deadline_s:
                message = (
                    f"{path}: another process has held the write lock for {LOCK_TIMEOUT_S:g} s; "
                    "find it with fuser or lsof; it is stopped, or its disk hangs"
                )
                raise StateUnavailableError(message)
            pause.wait(_RETRY_S)
        yield descriptor
    finally:
        os.close(descriptor)


def try_exclusive(path: Path) -> int | None:
    """Lock the file and return its descriptor; the lock lasts while it is open. None if another holder has the lock."""
    descriptor = _open(path)
    if _locked(descriptor):
        return descriptor
    os.close(descriptor)
    return None


def _open(path: Path) -> int:
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)


def _locked(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
