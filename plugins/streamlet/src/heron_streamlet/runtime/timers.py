"""When windows of keys close: keys by time, the next time first."""

from __future__ import annotations

import heapq
from collections.abc import Iterator

from heron_streamlet.windowing.event_time import END_OF_TIME_US

__all__ = ["Timers"]


class Timers:
    """The keys that have to be looked at when the watermark reaches a time; each key once for each time."""

    __slots__ = ("_keys", "_times")

    def __init__(self) -> None:
        self._keys: dict[int, dict[object, None]] = {}
        self._times: list[int] = []

    @property
    def next_us(self) -> int:
        """The next time; after every watermark if there is none."""
        return self._times[0] if self._times else END_OF_TIME_US + 1

    def add(self, time_us: int, key: object) -> None:
        """Adds a key."""
        keys = self._keys.get(time_us)
        if keys is None:
            keys = self._keys[time_us] = {}
            heapq.heappush(self._times, time_us)
        keys[key] = None

    def due(self, watermark_us: int) -> Iterator[object]:
        """Takes the keys whose time is at or before the watermark, in the order of their times."""
        while self._times and self._times[0] <= watermark_us:
            yield from self._keys.pop(heapq.heappop(self._times))
