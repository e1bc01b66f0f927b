"""Calls of keyed state of all kinds, by number: for random sequences of them."""

from __future__ import annotations

from collections.abc import Mapping

from heron.api.keyed_state import CounterState, ListState, MapState, ValueState
from heron.instance.state.keyed_state import KeyedStateStore

__all__ = ["CALLS", "KeyedCalls"]

CALLS = 12
"""The number of different calls."""

_TTL_S = 20.0


class KeyedCalls:
    """A store of keyed state with a handle of each kind."""

    def __init__(self, keyed: KeyedStateStore) -> None:
        self.keyed = keyed
        self._counts = keyed.state("counts", CounterState[str])
        self._values = keyed.state("values", ValueState[str, list[int]])
        self._lists = keyed.state("lists", ListState[str, int])
        self._maps = keyed.state("maps", MapState[str, int, int])
        self._brief = keyed.state("brief", CounterState[str], ttl_s=_TTL_S)
        self._all = (self._counts, self._values, self._lists, self._maps, self._brief)

    def call(self, which: int, key: str, number: int) -> object:
        """Make the call `which`, 0 to ``CALLS - 1``, and return its result."""
        if which < CALLS // 2:
            return self._write(which, key, number)
        if which == CALLS - 1:
            return self.contents() if number == 0 else [len(each) for each in self._all]
        reads = (
            self._counts.get(key),
            list(self._values.get(key) or ()),
            self._lists.get(key),
            self._maps.get(key, number % 3),
            key in self._brief,
        )
        return reads[which - CALLS // 2]

    def contents(self) -> Mapping[str, Mapping[str, object]]:
        """Return all that the handles give."""
        return {
            "counts": dict(self._counts.items()),
            "values": {key: list(value) for key, value in self._values.items()},
            "lists": dict(self._lists.items()),
            "maps": dict(self._maps.items()),
            "brief": dict(self._brief.items()),
        }

    def _write(self, which: int, key: str, number: int) -> object:
        if which == 0:
            return self._counts.add(key, number), self._brief.add(key, number)
        if which == 1:
            self._values.put(key, [number])
        elif which == 2:  # in place
            value = self._values.get(key)
            if value is not None:
                value.append(number)
        elif which == 3:
            self._lists.append(key, number)
        elif number % 2:
            self._maps.put(key, number % 3, number)
            self._maps.remove_field(key, (number + 1) % 3)
        else:
            self._all[number // 2].remove(key)
        return None
