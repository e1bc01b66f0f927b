"""Shows the other processes of this machine that the process which has a session lives.

The ensemble keeps a dead holder's node until its session times out. A process on the same machine need not wait for
that: the dead process had a file of its session's number locked, and the kernel has unlocked it. So a holder that
starts again takes its place at once. On another machine, or without the file, the time-out decides.

    LOCK_DIR/<boot id>-<session>   flock: taken for as long as the process lives
"""

from __future__ import annotations

import fcntl
import logging
import os
import threading
from pathlib import Path

from heron.driver_kit.private_files import make_private_dir

__all__ = ["LifeLock"]

_log = logging.getLogger(__name__)
_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
_KEPT_S = 3600.0  # longer than any session time-out: what is older tells nobody anything
_UNSIGNED = 2**64 - 1


class LifeLock:
    """Thread-safe. What fails is logged, and only costs the waiting."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._guard = threading.Lock()
        self._held: dict[int, int] = {}

    def show(self, session: int) -> None:
        """From now on, this process is known to live as long as it does."""
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
                _log.warning("a successor of this process will have to wait for its session's end: %s", error)

    def is_dead(self, session: int) -> bool:
        """Whether the process that had the session ran on this machine and is known to have ended."""
        with self._guard:
            if session in self._held:
                return False
            try:
                return _unlocked(self._path(session))
            except OSError:
                return False

    def close(self, *, ended: bool) -> None:
        """Unlocks; the files go too when the sessions have `ended`, for then nobody waits for them."""
        with self._guard:
            for session, descriptor in self._held.items():
                if ended:
                    self._path(session).unlink(missing_ok=True)
                os.close(descriptor)
            self._held.clear()

    def _path(self, session: int) -> Path:
        return self._folder / f"{_BOOT_ID.read_text().strip()}-{session & _UNSIGNED:016x}"

    def _sweep(self, own: Path) -> None:
        now_s = own.stat().st_mtime  # the clock of this file system, whatever ours says
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
