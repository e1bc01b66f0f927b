"""The allocator of the C library, in processes that read answers of megabytes again and again."""

from __future__ import annotations

import ctypes

__all__ = ["return_large_blocks"]

_MMAP_THRESHOLD, _TRIM_THRESHOLD, _ARENA_MAX = -3, -1, -8


def return_large_blocks(least_bytes: int = 1 << 18) -> None:
    """Let glibc return blocks of that size and more to the system at once, for the rest of the process.

    Otherwise glibc raises that limit with each block that is freed, up to 32 MiB, and answers that come and go leave
    holes. A large block costs calls of the system and new pages, which doubles the cost of a copy. Does nothing with
    another C library.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        for parameter, value in ((_MMAP_THRESHOLD, least_bytes), (_TRIM_THRESHOLD, least_bytes), (_ARENA_MAX, 1)):
            mallopt(parameter, value)
