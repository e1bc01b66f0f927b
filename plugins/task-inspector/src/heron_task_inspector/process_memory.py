"""The memory of this process as the kernel and the allocator of C see it."""

from __future__ import annotations

import ctypes
import resource
from pathlib import Path

__all__ = ["allocator_free_bytes", "parsed_rollup", "resident_bytes"]

_ROLLUP = Path("/proc/self/smaps_rollup")


class _MallInfo(ctypes.Structure):
    """``struct mallinfo2`` of glibc."""

    _fields_ = (("earlier", ctypes.c_size_t * 8), ("fordblks", ctypes.c_size_t), ("keepcost", ctypes.c_size_t))


def resident_bytes() -> tuple[int, int]:
    """The bytes in the machine's memory, and the part of them that belongs to files; the peak and 0 where unknown."""
    try:
        return parsed_rollup(_ROLLUP.read_text())
    except (OSError, ValueError):
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024, 0


def parsed_rollup(text: str) -> tuple[int, int]:
    """Resident bytes and those of files, of the text of ``smaps_rollup``.

    Raises:
        ValueError: when a value is missing.
    """
    found = {}
    for line in text.splitlines():
        name, _, rest = line.partition(":")
        if name in ("Rss", "Anonymous"):
            found[name] = int(rest.split()[0]) * 1024
    if len(found) != 2:
        msg = f"no Rss and Anonymous in {text:.80}"
        raise ValueError(msg)
    return found["Rss"], max(0, found["Rss"] - found["Anonymous"])


def allocator_free_bytes() -> int | None:
    """What the allocator of C keeps for later; None where it does not tell, as that of musl."""
    try:
        mallinfo = ctypes.CDLL(None).mallinfo2
    except (AttributeError, OSError):
        return None
    mallinfo.restype = _MallInfo
    return int(mallinfo().fordblks)
