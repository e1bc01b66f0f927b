"""The entries of one keyed state, by key group."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from heron.api.keyed_state import GroupEntries, StateTable
from heron.clock import Clock
from heron.errors import UsageError
from heron.instance.state.state_payload import SavedEntries

__all__ = ["MEMO_LIMIT", "GroupedTable"]

MEMO_LIMIT = 262_144
"""Keys whose group a state remembers before it forgets all: 10 MB for each state."""

Place = Callable[[str, object], int]
"""Gives the group of a key for the state of this name, or raises UsageError."""


class GroupedTable(StateTable):
    """`StateTable` of a store."""

    def __init__(self, name: str, kind: str, place: Place, opened: Callable[[int], None], clock: Clock) -> None:
        """`opened` is called with a group before it changes."""
        self.name = name
        self.kind = kind
        self.version = 0
        self.ttl_s: float | None = None
        self.event_time = False
        self.event_time_s: float | None = None
        self.groups: dict[int, GroupEntries] = {}
        self.parts = _Memo(self, place)
        self._asked = False  # until the component asks for the state, times that were loaded are kept
        self._opened = opened
        self._clock = clock

    def expire(self, ttl_s: float | None, *, event_time: bool) -> None:
        """Sets the time to live, also of entries that were loaded before."""
        self.ttl_s, self.event_time, self._asked = ttl_s, event_time, True
        for part in self.groups.values():
            self._adapt(part)

    def part(self, group: int) -> GroupEntries:
        """The entries of a group; a new part if there is none."""
        part = self.groups.get(group)
        if part is None:
            part = self.groups[group] = self.make_part(group, self.version, None if self.ttl_s is None else {})
        return part

    def load(self, group: int, saved: SavedEntries) -> None:
        """Replaces the entries of a group."""
        part = self.make_part(group, saved.version, saved.times_s)
        self.fill(part, saved.entries)
        if self._asked:
            self._adapt(part)
        self.groups[group] = part
        self.parts.clear()
        if saved.event_time_s is not None:
            self.event_time_s = max(saved.event_time_s, self.event_time_s or saved.event_time_s)

    def saved(self, group: int, cutoff_s: float, event_time_s: float | None) -> SavedEntries | None:
        """The entries of a group that are newer than the cutoff; None if there are none."""
        part = self.groups.get(group)
        if not part:
            return None
        return self.saved_of(part, part, part.times_s, cutoff_s, event_time_s)

    def saved_of(
        self,
        part: GroupEntries,
        held: dict[Any, Any],
        times_s: dict[object, float] | None,
        cutoff_s: float,
        event_time_s: float | None,
    ) -> SavedEntries | None:
        """As `saved`, of these entries and times of the part."""
        if times_s is None:
            return SavedEntries(self.kind, part.version, dict(held), None, event_time_s) if held else None
        entries = {key: value for key, value in held.items() if times_s.get(key, math.inf) > cutoff_s}
        kept_s = {key: time_s for key, time_s in times_s.items() if key in entries}
        return SavedEntries(self.kind, part.version, entries, kept_s, event_time_s) if entries else None

    def make_part(self, group: int, version: int, times_s: dict[object, float] | None) -> GroupEntries:
        """An empty part, which belongs to the table when the caller says so."""
        return GroupEntries(group, version, times_s)

    def fill(self, part: GroupEntries, entries: dict[Any, Any]) -> None:
        """Puts all entries into an empty part that replaces the one of its group."""
        part.update(entries)

    def drop(self, groups: Iterable[int]) -> None:
        """Forgets these groups."""
        for group in groups:
            self.groups.pop(group, None)
        self.parts.clear()

    def expired_groups(self) -> Iterator[int]:
        """The groups that have an expired entry."""
        cutoff_s = self.cutoff_s()
        for group, part in self.groups.items():
            if part.times_s and next(iter(part.times_s.values())) <= cutoff_s:
                yield group

    def before_write(self, entries: GroupEntries, key: object) -> None:
        """`StateTable.before_write`."""
        times_s = entries.times_s
        if times_s is None:
            self.before_change(entries)
            return
        now_s = self.event_time_s if self.event_time else self._clock.wall_s()
        if now_s is None:
            msg = (
                f"keyed state {self.name!r}: a write before the first `advance`; a state with event_time=True needs "
                "the event time, call advance(event_time_s) first"
            )
            raise UsageError(msg)
        self._opened(entries.group)
        cutoff_s = self.cutoff_s()
        if times_s.pop(key, math.inf) <= cutoff_s:
            entries.pop(key, None)
        while times_s:
            oldest = next(iter(times_s))
            if times_s[oldest] > cutoff_s:
                break
            del times_s[oldest]
            entries.pop(oldest, None)  # a write that failed has left only its time
        times_s[key] = now_s

    def before_change(self, entries: GroupEntries) -> None:
        """`StateTable.before_change`."""
        self._opened(entries.group)
        entries.guarded = entries.times_s is not None

    def cutoff_s(self) -> float:
        """`StateTable.cutoff_s`."""
        if self.ttl_s is None:
            return -math.inf
        now_s = self.event_time_s if self.event_time else self._clock.wall_s()
        return -math.inf if now_s is None else now_s - self.ttl_s

    def advance(self, event_time_s: float) -> None:
        """`StateTable.advance`."""
        if not self.event_time:
            msg = f"keyed state {self.name!r}: expires by no event time; ask for it with ttl_s=… and event_time=True"
            raise UsageError(msg)
        if not math.isfinite(event_time_s):
            msg = f"keyed state {self.name!r}: event time {event_time_s} s is not a finite number; give seconds"
            raise UsageError(msg)
        if self.event_time_s is None or event_time_s > self.event_time_s:
            self.event_time_s = event_time_s

    def all_parts(self) -> tuple[GroupEntries, ...]:
        """`StateTable.all_parts`."""
        return tuple(part for _, part in sorted(self.groups.items()) if part)

    def _adapt(self, part: GroupEntries) -> None:
        if self.ttl_s is None:
            part.times_s = None
        elif part.times_s is None:
            part.times_s = {}


class _Memo(dict[object, GroupEntries]):
    """Key to its entries. A missing key is placed, checked and remembered."""

    def __init__(self, table: GroupedTable, place: Place) -> None:
        super().__init__()
        self._table = table
        self._place = place

    def __missing__(self, key: object) -> GroupEntries:
        entries = self._table.part(self._place(self._table.name, key))
        if len(self) >= MEMO_LIMIT:
            self.clear()
        self[key] = entries
        return entries
