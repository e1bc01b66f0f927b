"""Points as bytes: carbon's two protocols. Pure."""

from __future__ import annotations

import pickle
import struct
from collections.abc import Iterable, Iterator, Sequence

from heron_metricsink_graphite.series import Point

__all__ = ["as_pickle", "as_plaintext", "parts"]

_PART_BYTES = 256 * 1024  # carbon takes pickled messages of up to 1 MiB
_POINT_BYTES = 50  # of a point beside its name, at most


def parts(points: Iterable[Point]) -> Iterator[list[Point]]:
    """The points, divided so that each part fits into one message."""
    part: list[Point] = []
    size = 0
    for point in points:
        part.append(point)
        size += len(point[0]) + _POINT_BYTES
        if size >= _PART_BYTES:
            yield part
            part, size = [], 0
    if part:
        yield part


def as_plaintext(points: Sequence[Point]) -> bytes:
    """A line for each point."""
    return "".join(f"{name} {value!r} {at_s}\n" for name, (at_s, value) in points).encode("ascii")


def as_pickle(points: Sequence[Point]) -> bytes:
    """One message: its length and a pickled list, in the oldest protocol that carbon of any Python reads."""
    data = pickle.dumps(list(points), protocol=2)
    return struct.pack("!L", len(data)) + data
