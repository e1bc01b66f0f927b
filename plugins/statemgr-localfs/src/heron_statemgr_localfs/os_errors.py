"""Errors of the file system as errors of Heron, each with its remedy."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from heron.errors import StateError, StateUnavailableError

__all__ = ["root_gone", "translate_os_errors"]

_REFUSALS = {
    errno.ENOSPC: "there is no space left on its file system; make room there, or choose another 'root'",
    errno.EFBIG: "the file would exceed the limit on file sizes; raise the limit (ulimit -f)",
    errno.EDQUOT: "the disk quota is used up; make room, or choose another 'root'",
    errno.EACCES: "permission denied; give this user the right to write there, or choose another 'root'",
    errno.EPERM: "the operation is not permitted; give this user the right, or choose another 'root'",
    errno.EROFS: "its file system is read-only; choose another 'root'",
    errno.ENAMETOOLONG: "the path is too long; choose a shorter 'root'",
    errno.ENOTDIR: "a part of the path is not a directory; move it away, or choose another 'root'",
    errno.EEXIST: "there is a file where a directory is needed; move it away, or choose another 'root'",
    errno.EISDIR: "there is a directory where a file is needed; move it away",
}


@contextmanager
def translate_os_errors(action: str, path: Path) -> Iterator[None]:
    """Turn an OSError of the block into a StateError that names the `action` and the `path`.

    An error outside the table (an I/O error, a stale NFS handle, too many open files) may be temporary. It becomes a
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


def root_gone(root: Path, remedy: str = "") -> StateUnavailableError:
    """The error for a state folder that existed before."""
    return StateUnavailableError(
        f"the state folder {root} is gone; bring it back (is it mounted?), or choose another 'root'{remedy}"
    )
