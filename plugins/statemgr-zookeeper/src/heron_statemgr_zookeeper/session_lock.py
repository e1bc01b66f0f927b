"""Locked files that show the processes of this machine whether the owner of a session lives.

The ensemble keeps the node of a dead holder until its session times out. A process on the same machine need not wait
for the timeout: the kernel has unlocked the file of the dead process. So a restarted holder can hold its node again at
once. On another machine, or without the file, the timeout decides.

    LOCK_DIR/<boot id>-<session>   flock: locked while the process lives
"""

from __future__ import annotations

import fcntl
import logging
import os
import threading
from pathlib import Path

from heron.driver_kit.private_files import make_private_dir

__all__ = ["SessionLocks"]

_log = logging.getLogger(__name__)
_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
_KEPT_S = 3600.0  # longer than any session timeout, so nobody needs an older file
_UNSIGNED = 2**64 - 1


class SessionLocks:
    """The locks of this process; thread-safe. A failure is logged; other processes then wait for the timeout."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._guard = threading.Lock()
        self._held: dict[int, int] = {}

    def lock(self, session: int) -> None:
        """Lock the file of this process's session until `close` or the end of the process."""
        with self._guard:
            if session in self._held:
                return
            try:
                make_private_dir(self._folder)
                path = self._path(session)
                descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
                self._held[session] = descriptor
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                self._sweep(path)
            except OSError as error:
                _log.warning(
                    "a process that replaces this process must wait for the session timeout, "
                    "because 'lock_dir' cannot be used: %s",
                    error,
                )

    def is_dead(self, session: int) -> bool:
        """Whether the owner of the session ran on this machine and has ended."""
        with self._guard:
            if session in self._held:
                return False
            try:
                return _unlocked(self._path(session))
            except OSError:
                return False

    def close(self, *, ended: bool) -> None:
        """Unlock all files. Also remove them if the sessions have `ended`, because then nobody needs them."""
        with self._guard:
            for session, descriptor in self._held.items():
                if ended:
                    self._path(session).unlink(missing_ok=True)
                os.close(descriptor)
            self._held.clear()

    def _path(self, session: int) -> Path:
        return self._folder / f"{_BOOT_ID.read_text().strip()}-{session & _UNSIGNED:016x}"

    def _sweep(self, own: Path) -> None:
        now_s = own.stat().st_mtime  # by the clock of the file system, as are the other times
        for each in self._folder.iterdir():
            if now_s - each.stat().st_mtime > _KEPT_S and _unlocked(each):
                each.unlink(missing_ok=True)


def _unlocked(path: Path) -> bool:
    descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    finally:
        os.close(descriptor)
    return True
