"""Errors of the file system as errors of a family, each with its remedy."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager

from heron.errors import HeronError

__all__ = ["translated_os_errors"]

_NO_SPACE = frozenset({errno.ENOSPC, errno.EDQUOT})
_NOT_PERMITTED = frozenset({errno.EACCES, errno.EPERM, errno.EROFS})


@contextmanager
def translated_os_errors(to: type[HeronError], what: str, remedy: str) -> Iterator[None]:
    """Turn an OSError of the block into an error `to` that starts with `what` and ends with `remedy`.

    The remedy for a full disk is always to free space. For a missing permission, granting it comes before `remedy`.
    """
    try:
        yield
    except OSError as error:
        if error.errno in _NO_SPACE:
            remedy = "free some space there"
        elif error.errno in _NOT_PERMITTED:
            remedy = f"grant the permission, or {remedy}"
        place = f" ({error.filename})" if error.filename else ""
        msg = f"{what}: {error.strerror or error}{place}; {remedy}"
        raise to(msg) from error
