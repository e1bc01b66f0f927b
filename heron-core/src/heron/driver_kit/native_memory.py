"""The allocator of the C library, in processes that read answers of megabytes again and again."""

from __future__ import annotations

import ctypes

__all__ = ["return_large_blocks"]

_MALLOPT = {-3: 1 << 18, -1: 1 << 18, -8: 1}  # M_MMAP_THRESHOLD and M_TRIM_THRESHOLD in bytes, M_ARENA_MAX


def return_large_blocks() -> None:
    """Let glibc return blocks of 256 KiB and more to the system at once, for the rest of the process.

    Otherwise it raises that limit with each block that is freed, up to 32 MiB, and answers that come and go leave
    holes. Does nothing with another C library.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        for parameter, value in _MALLOPT.items():
            mallopt(parameter, value)
