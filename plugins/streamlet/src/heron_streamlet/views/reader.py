"""Reads a view: history and live spans as one answer."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Generic, TypeVar

from heron.clock import Clock, SystemClock
from heron.spi.store import ViewStore
from heron_streamlet.views.key_bytes import key_bytes, key_of
from heron_streamlet.views.view import View

__all__ = ["Answer", "ViewReader"]

R = TypeVar("R")

_KEYS_AT_ONCE = 1000


@dataclass(frozen=True, slots=True)
class Answer(Generic[R]):
    """What a view says of some keys, at one instant.

    Attributes:
        values: the result of each key that was asked for; that of no values for a key that the view does not have.
        until: the end of the batch that is part of it; None before the first one.
        age_s: seconds since the live side has published, by the clocks of the machines; None if it never has. What
            happened in this time may be missing, and more while the live side has a backlog.
    """

    values: Mapping[object, R]
    until: datetime | None
    age_s: float | None


class ViewReader(Generic[R]):
    """Reads a view. Any number of readers may do so, while both sides write.

    store = open_store("local")
    answer = ViewReader(clicks, store).read(["ad-7"])
    answer.values["ad-7"], answer.age_s
    """

    clock: Clock = SystemClock()

    def __init__(self, view: View[Any, R], store: ViewStore) -> None:
        self._view = view
        self._store = store

    def read(self, keys: Iterable[object]) -> Answer[R]:
        """Return the results of these keys.

        Raises:
            StoreError: when the store does not answer, or another monoid wrote the view.
            EmitError: when a key cannot be a key.
        """
        names = {key: key_bytes(key) for key in keys}
        monoid = self._view.monoid
        reading = self._store.read(self._view.name, names.values())
        values: dict[object, R] = {}
        for key, name in names.items():
            merged = monoid.zero()
            for data in (*([reading.history[name]] if name in reading.history else ()), *reading.live.get(name, ())):
                merged = monoid.merge(merged, self._view.decode(data))
            values[key] = monoid.result(merged)
        return Answer(values, _time(reading.until_us), self._age_s(reading.live_at_us))

    def keys(self) -> Iterator[object]:
        """Iterate over the keys that have a value, in the order of their bytes; numbers that are integers are int.

        Raises:
            StoreError: when the store does not answer.
        """
        after = b""
        while found := self._store.keys(self._view.name, after, _KEYS_AT_ONCE):
            yield from map(key_of, found)
            after = found[-1]

    def _age_s(self, at_us: int | None) -> float | None:
        return None if at_us is None else max(0.0, self.clock.wall_s() - at_us / 1_000_000)


def _time(us: int | None) -> datetime | None:
    return None if us is None else datetime.fromtimestamp(0, UTC) + timedelta(microseconds=us)
