"""The partition of a message in its category: the hash of its key, as in the buckets of Scribe."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping

__all__ = ["MessagePartitions"]


class MessagePartitions:
    """`counts` has the number of partitions of categories; others have one. `delimiter` ends the key."""

    def __init__(self, counts: Mapping[str, int], delimiter: bytes) -> None:
        self._functions = {category: _hashed(count, delimiter) for category, count in counts.items() if count > 1}

    def of(self, category: str) -> Callable[[bytes], int] | None:
        """The function that gives the partition of a message; None if all are in partition 0."""
        return self._functions.get(category)


def _hashed(count: int, delimiter: bytes) -> Callable[[bytes], int]:
    """Equal keys have equal partitions, on every machine and in every version."""
    return lambda message: zlib.crc32(message.partition(delimiter)[0]) % count
