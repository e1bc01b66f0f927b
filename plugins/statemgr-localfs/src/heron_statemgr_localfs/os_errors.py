"""The operating system's refusals in Heron's words, each with its remedy."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from heron.errors import StateError, StateUnavailableError

__all__ = ["translated"]

_REFUSALS = {
    errno.ENOSPC: "there is no space left on its file system; make room there, or choose another 'root'",
    errno.EFBIG: "no file may grow so large here; raise the limit (ulimit -f)",
    errno.EDQUOT: "the disk quota is used up; make room, or choose another 'root'",
    errno.EACCES: "permission denied; give this user the right to write there, or choose another 'root'",
    errno.EPERM: "the operation is not permitted; give this user the right, or choose another 'root'",
    errno.EROFS: "its file system is read-only; choose another 'root'",
    errno.ENAMETOOLONG: "the path is too long; choose a shorter 'root'",
    errno.ENOTDIR: "a part of the path is not a directory; move it away, or choose another 'root'",
    errno.EEXIST: "a file stands where a directory belongs; move it away, or choose another 'root'",
    errno.EISDIR: "a directory stands where a file belongs; move it away",
}


@contextmanager
def translated(action: str, path: Path) -> Iterator[None]:
    """Turns an OSError of the block into a StateError: `action` says what was tried, `path` on which file.

    What the table does not know (an I/O error, a stale NFS handle, too many open files) may pass: that is
    StateUnavailableError.
    """
    try:
        yield
    except OSError as error:
        reason = _REFUSALS.get(error.errno or 0)
        if reason is not None:
            message = f"cannot {action} {path}: {reason}"
            raise StateError(message) from error
        message = f"cannot {action} {path}: {error.strerror or error}; check the file system and try again"
        raise StateUnavailableError(message) from error
