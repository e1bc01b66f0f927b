"""Keyed state: values, counters, lists and maps that the engine keeps for each key of a task.

A handle (`TopologyContext.keyed_state`) takes the key as the first argument of each call. The engine saves only key
groups that were changed since the last checkpoint. So each handle reports a change before it makes it, and also a read
that returns an object which the author can change in place.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any, ClassVar, Final, Generic, TypeVar
from uuid import UUID

__all__ = [
    "CounterState",
    "GroupEntries",
    "KeyedState",
    "ListState",
    "MapState",
    "StateTable",
    "ValueState",
    "is_frozen",
]

K = TypeVar("K")
F = TypeVar("F")
V = TypeVar("V")

_FROZEN: Final = frozenset(
    {int, float, complex, bool, str, bytes, type(None), Decimal, date, datetime, timedelta, UUID}
)
_ABSENT: Final = object()


def is_frozen(value: object) -> bool:
    """Whether nobody can change the value in place: a scalar, or a tuple of scalars."""
    return type(value) in _FROZEN or (type(value) is tuple and _FROZEN.issuperset(map(type, value)))


class GroupEntries(dict[Any, Any]):
    """The entries of one state in one key group. `StateTable` maintains the attributes."""

    __slots__ = ("group", "guarded", "times_s", "version")

    def __init__(self, group: int, version: int, times_s: dict[object, float] | None) -> None:
        super().__init__()
        self.group = group
        self.guarded = True
        """Whether `StateTable.before_write` must be called before a change."""
        self.times_s = times_s
        """The time of the last write of each key, oldest first, if entries expire. A key without a time is kept."""
        self.version = version
        """The `state_version` of the component that wrote the entries."""


class StateTable(ABC):
    """The engine's side of one keyed state of one task. Authors do not use it."""

    parts: dict[object, GroupEntries]
    """The entries that a key belongs to. A look-up of a new key raises UsageError if the task does not own the key."""
    ttl_s: float | None

    @abstractmethod
    def before_write(self, entries: GroupEntries, key: object) -> None:
        """`key` will be written: an expired value is removed, and the time is noted.

        Raises:
            UsageError: when entries expire by event time, and there was no `advance` yet.
        """

    @abstractmethod
    def before_change(self, entries: GroupEntries) -> None:
        """The author receives an object of these entries, or removes a key."""

    @abstractmethod
    def cutoff_s(self) -> float:
        """Entries that were written at or before this time are expired; -inf when entries do not expire."""

    @abstractmethod
    def advance(self, event_time_s: float) -> None:
        """`KeyedState.advance`."""

    @abstractmethod
    def all_parts(self) -> tuple[GroupEntries, ...]:
        """The entries of all groups that have any, by group."""


class KeyedState(Generic[K]):
    """What all kinds have in common. Only the component's thread may use a handle.

    A key is the value of the grouping's field. If a grouping of the component names several fields, a tuple is the
    values in the order of these fields. Every call with a key raises `UsageError` when the task does not own the key's
    group, and when the key cannot be grouped by. Keys that compare equal are one key (`1`, `1.0`, `True`).
    """

    kind: ClassVar[str] = ""

    def __init__(self, table: StateTable) -> None:
        self._table = table
        self._parts = table.parts
        self._expires = table.ttl_s is not None

    def remove(self, key: K) -> None:
        """Remove the key; a missing key is not an error."""
        entries = self._parts[key]
        if key in entries:
            self._table.before_change(entries)
            del entries[key]
            if entries.times_s is not None:
                entries.times_s.pop(key, None)

    def keys(self) -> Iterator[K]:
        """Yield the keys of this task, group by group. The state may be changed meanwhile.

        A key that is added meanwhile may be yielded or not.
        """
        for entries in self._table.all_parts():
            for key in tuple(entries):
                if key in entries and not (self._expires and self._is_expired(entries, key)):
                    yield key

    def advance(self, event_time_s: float) -> None:
        """Set the event time, in seconds of any scale; an earlier time than before changes nothing.

        Call it before the first write of a state with ``event_time=True``. Usual is the time of the tuple, minus the
        greatest delay that is expected.

        Raises:
            UsageError: when the state does not expire by event time, or the time is not a finite number.
        """
        self._table.advance(event_time_s)

    def __contains__(self, key: K) -> bool:
        entries = self._parts[key]
        return key in entries and not (self._expires and self._is_expired(entries, key))

    def __len__(self) -> int:
        """The number of keys of this task."""
        if self._expires:
            return sum(1 for _ in self.keys())
        return sum(map(len, self._table.all_parts()))

    def _is_expired(self, entries: GroupEntries, key: object) -> bool:
        times_s = entries.times_s
        return times_s is not None and key in times_s and times_s[key] <= self._table.cutoff_s()

    def _held(self, key: object) -> Any:  # noqa: ANN401  # whatever the author put in
        """The list or dict of the key, or None."""
        entries = self._parts[key]
        held = entries.get(key)
        return None if held is None or (self._expires and self._is_expired(entries, key)) else held

    def _to_write(self, key: object) -> GroupEntries:
        entries = self._parts[key]
        if entries.guarded:
            self._table.before_write(entries, key)
        return entries


class ValueState(KeyedState[K], Generic[K, V]):
    """One value for each key."""

    kind = "value"

    def __init__(self, table: StateTable, default: V | None = None) -> None:
        super().__init__(table)
        self._default = default

    def put(self, key: K, value: V) -> None:
        """Set the value of the key."""
        entries = self._parts[key]
        if entries.guarded:
            self._table.before_write(entries, key)
        entries[key] = value

    def get(self, key: K) -> V | None:
        """Return the value of the key, or the default.

        The object may be changed in place until the component returns to the engine. Get it again in the next call:
        a later change of an object that was kept is not saved. Such a change does not prolong the time to live.
        """
        entries = self._parts[key]
        value: V = entries.get(key, _ABSENT)
        if value is _ABSENT or (self._expires and self._is_expired(entries, key)):
            return self._default
        if type(value) not in _FROZEN and entries.guarded and not is_frozen(value):
            self._table.before_change(entries)
        return value

    def items(self) -> Iterator[tuple[K, V]]:
        """Yield each key of this task with its value, as `keys` and `get`."""
        for key in self.keys():
            yield key, self.get(key)  # type: ignore[misc]  # the key is present


class CounterState(KeyedState[K]):
    """One integer for each key, 0 at first."""

    kind = "counter"

    def add(self, key: K, amount: int = 1) -> int:
        """Add to the counter of the key, and return its new value."""
        entries = self._parts[key]
        if entries.guarded:
            self._table.before_write(entries, key)
        total: int = entries.get(key, 0) + amount
        entries[key] = total
        return total

    def get(self, key: K) -> int:
        """Return the counter of the key."""
        entries = self._parts[key]
        if self._expires and self._is_expired(entries, key):
            return 0
        total: int = entries.get(key, 0)
        return total

    def items(self) -> Iterator[tuple[K, int]]:
        """Yield each key of this task with its counter, as `keys`."""
        for key in self.keys():
            yield key, self.get(key)


class ListState(KeyedState[K], Generic[K, V]):
    """A list of values for each key."""

    kind = "list"

    def append(self, key: K, value: V) -> None:
        """Append the value to the list of the key."""
        entries = self._to_write(key)
        held = entries.get(key)
        if held is None:
            entries[key] = [value]
        else:
            held.append(value)

    def get(self, key: K) -> tuple[V, ...]:
        """Return the values of the key, oldest first; empty for a missing key. As for `ValueState.get`."""
        held: Sequence[V] = self._held(key) or ()
        if not _FROZEN.issuperset(map(type, held)):
            self._table.before_change(self._parts[key])
        return tuple(held)

    def put(self, key: K, values: Sequence[V]) -> None:
        """Replace the list of the key by these values; without values the key is removed."""
        if values:
            self._to_write(key)[key] = list(values)
        else:
            self.remove(key)

    def items(self) -> Iterator[tuple[K, tuple[V, ...]]]:
        """Yield each key of this task with its values, as `keys` and `get`."""
        for key in self.keys():
            yield key, self.get(key)


class MapState(KeyedState[K], Generic[K, F, V]):
    """Fields with values for each key. A time to live counts from the last write to any field of the key."""

    kind = "map"

    def put(self, key: K, field: F, value: V) -> None:
        """Set the value of a field of the key."""
        entries = self._to_write(key)
        held = entries.get(key)
        if held is None:
            entries[key] = {field: value}
        else:
            held[field] = value

    def get(self, key: K, field: F) -> V | None:
        """Return the value of a field of the key, or None. As for `ValueState.get`."""
        held: Mapping[F, V] = self._held(key) or {}
        value = held.get(field)
        if not is_frozen(value):
            self._table.before_change(self._parts[key])
        return value

    def fields(self, key: K) -> dict[F, V]:
        """Return all fields of the key in a new dict; empty for a missing key. As for `ValueState.get`."""
        held: Mapping[F, V] = self._held(key) or {}
        if not _FROZEN.issuperset(map(type, held.values())):
            self._table.before_change(self._parts[key])
        return dict(held)

    def remove_field(self, key: K, field: F) -> None:
        """Remove a field of the key; a missing field is not an error. A key without fields is removed."""
        held = self._held(key)
        if held is not None and field in held:
            self._to_write(key)
            del held[field]
            if not held:
                self.remove(key)

    def items(self) -> Iterator[tuple[K, dict[F, V]]]:
        """Yield each key of this task with its fields, as `keys` and `fields`."""
        for key in self.keys():
            yield key, self.fields(key)
