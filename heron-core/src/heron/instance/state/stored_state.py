"""Keyed state in a `TaskStore`: entries of parts whose values come from the store and go back to it.

`StoredEntries` is a dict like other `GroupEntries`, and its own items are a cache. `StateCache.flush_if_many` writes
what changed, between two calls of user code: within a call the author may change an object that `get` returned. So an
access of the component reads from the store, and never writes to it.
"""

from __future__ import annotations

import contextlib
import hashlib
import pickle
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

from heron.api.keyed_state import GroupEntries
from heron.clock import Clock
from heron.instance.state.state_payload import SavedEntries
from heron.instance.state.state_table import GroupedTable, Place
from heron.spi.state import MAX_KEY_BYTES, StateView, TaskStore

__all__ = ["StateCache", "StoredEntries", "StoredTable"]

_UNWRITTEN: Final = 256  # entries: a store writes them in about 2 ms
_PROTOCOL: Final = 5
_ABSENT: Final = object()
_GROUP_BITS: Final = 16  # MAX_KEY_GROUPS is 2**16

EncodeKey = Callable[[object], bytes]


class StateCache:
    """The store of a task, and the entries of it that are in memory. Belongs to the task thread."""

    def __init__(self, store: TaskStore, encode_key: EncodeKey, limit_bytes: int) -> None:
        """`encode_key` gives the canonical bytes of a key: equal keys have equal bytes."""
        self.store = store
        self._encode_key = encode_key
        self._limit_bytes = limit_bytes
        self._tables: dict[str, int] = {}
        self._held: dict[StoredEntries, None] = {}  # parts with entries in memory
        self._unwritten = 0
        self._held_bytes = 0
        self._lent: list[tuple[StoredEntries, object]] = []
        self.view: StateView | None = None

    def make_table(
        self, name: str, kind: str, place: Place, opened: Callable[[int], None], clock: Clock
    ) -> GroupedTable:
        """A table whose entries are in the store."""
        return StoredTable(name, kind, place, opened, clock, self)

    def part_number(self, table: str, group: int) -> int:
        """The number of a part in the store."""
        return self._tables.setdefault(table, len(self._tables)) << _GROUP_BITS | group

    def record_key(self, key: object) -> bytes:
        """The key of an entry in the store."""
        data = self._encode_key(key)
        return data if len(data) < MAX_KEY_BYTES else b"#" + hashlib.blake2b(data, digest_size=32).digest()

    def hold(self, part: StoredEntries, size_bytes: int) -> None:
        """`part` is about to keep an entry in memory. Entries that need not stay are forgotten if there are many."""
        if self._held_bytes >= self._limit_bytes:
            self._evict()
        self._held[part] = None
        self._held_bytes += size_bytes

    def changed(self, part: StoredEntries) -> None:
        """An entry of the part changes that is in the store with its former value."""
        self._held[part] = None
        self._unwritten += 1

    def lend(self, part: StoredEntries, key: object) -> None:
        """The component has an object of this entry until its method returns."""
        self._lent.append((part, key))

    def flush_if_many(self) -> None:
        """No method of the component is running: writes the changes, if there are many.

        Raises:
            KeyedStateError: when the store does not take them; the task keeps them in memory.
        """
        if self._unwritten >= _UNWRITTEN or len(self._lent) >= _UNWRITTEN:
            self.flush()

    def flush(self) -> None:
        """Writes all changes, between two calls of user code. What cannot be pickled stays in memory.

        Raises:
            KeyedStateError: as `flush_if_many`.
        """
        changes: dict[tuple[int, bytes], bytes | None] = {}
        for part in self._held:
            part.collect(changes)
        if changes:
            self.store.write(changes)
            self._held_bytes += sum(len(value) for value in changes.values() if value is not None)
        self._unwritten = 0
        self._lent.clear()
        for part in self._held:
            part.written()
        if self._held_bytes >= self._limit_bytes:
            self._evict()

    def open_view(self) -> None:
        """Writes all changes and opens a view of this instant; the caller closes it.

        Raises:
            KeyedStateError: as `flush_if_many`.
        """
        self.close_view()
        self.flush()
        self.view = self.store.view()
        for part in self._held:
            part.note_unwritable()

    def close_view(self) -> None:
        """Closes the view; without one nothing happens."""
        if self.view is not None:
            self.view.close()
            self.view = None

    def close(self) -> None:
        """Removes the store."""
        self.close_view()
        self.store.close()

    def _evict(self) -> None:
        lent: dict[StoredEntries, set[object]] = {}
        for part, key in self._lent:
            lent.setdefault(part, set()).add(key)
        self._held = {part: None for part in self._held if part.evict(lent.get(part, set()))}
        self._held_bytes = 0


class StoredEntries(GroupEntries):
    """The entries of one part. The dict's own items are those in memory."""

    __slots__ = ("_cache", "_count", "_last", "_removed", "_unwritable", "_unwritten", "number", "unwritable_in_view")

    def __init__(
        self, group: int, version: int, times_s: dict[object, float] | None, cache: StateCache, number: int
    ) -> None:
        super().__init__(group, version, times_s)
        self._cache = cache
        self.number = number
        self._count = 0
        self._last: object = None
        self._unwritten: dict[object, None] = {}
        self._removed: dict[object, None] = {}
        self._unwritable: dict[object, None] = {}
        self.unwritable_in_view: dict[object, object] = {}
        """Entries that belong to the view, and could not be pickled."""

    __hash__ = object.__hash__  # type: ignore[assignment]  # by identity: a part is a key of the cache's dicts

    def __eq__(self, other: object) -> bool:
        return self is other

    def __ne__(self, other: object) -> bool:
        return self is not other

    def __len__(self) -> int:
        return self._count

    def __bool__(self) -> bool:
        return self._count > 0

    def __contains__(self, key: object) -> bool:
        return self._value(key) is not _ABSENT

    def get(self, key: object, default: Any = None) -> Any:  # noqa: ANN401  # whatever the author put in
        """`dict.get`."""
        value = self._value(key)
        return default if value is _ABSENT else value

    def __getitem__(self, key: object) -> Any:  # noqa: ANN401
        value = self._value(key)
        if value is _ABSENT:
            raise KeyError(key)
        return value

    def __setitem__(self, key: object, value: object) -> None:
        if self._value(key) is _ABSENT:
            self._count += 1
            self._cache.hold(self, 0)
        self._removed.pop(key, None)
        super().__setitem__(key, value)
        self.mark(key)

    def __delitem__(self, key: object) -> None:
        if self._value(key) is _ABSENT:
            raise KeyError(key)
        super().__delitem__(key)
        self._count -= 1
        self._unwritten.pop(key, None)
        self._unwritable.pop(key, None)
        self._removed[key] = None
        self._cache.changed(self)

    def pop(self, key: object, default: Any = None) -> Any:  # noqa: ANN401
        """`dict.pop`, with None as the default."""
        value = self._value(key)
        if value is _ABSENT:
            return default
        del self[key]
        return value

    def __iter__(self) -> Iterator[Any]:
        yield from tuple(super().__iter__())
        for key, _, _ in self._stored():
            if not super().__contains__(key) and key not in self._removed:
                yield key

    def entries(self, view: StateView | None) -> tuple[dict[Any, Any], dict[object, float]]:
        """All entries and the times of their last writes; those of the view, if there is one."""
        if view is None:
            found = dict(super().items())
            found |= {key: value for key, value, _ in self._stored() if key not in found and key not in self._removed}
            return found, dict(self.times_s or {})
        records = [pickle.loads(data) for _, data in view.scan(self.number)]  # noqa: S301  # written by this process
        entries = {key: value for key, value, _ in records} | self.unwritable_in_view
        return entries, {key: time_s for key, _, time_s in records if time_s is not None}

    def mark(self, key: object) -> None:
        """The entry is to be written."""
        if key not in self._unwritten:
            self._unwritten[key] = None
            self._cache.changed(self)

    def mark_for_write(self, key: object) -> None:
        """The component writes this key."""
        if self._value(key) is not _ABSENT:
            self.mark(key)

    def mark_last(self) -> None:
        """The component has received the object of the entry that was read last."""
        if super().__contains__(self._last):
            self.mark(self._last)
            self._cache.lend(self, self._last)

    def collect(self, changes: dict[tuple[int, bytes], bytes | None]) -> None:
        """Adds the changes since `written`."""
        name = self._cache.record_key
        for key in self._removed:
            changes[self.number, name(key)] = None
        times_s = self.times_s or {}
        self._unwritten |= self._unwritable
        self._unwritable = {}
        for key in self._unwritten:
            try:
                data = pickle.dumps((key, super().__getitem__(key), times_s.get(key)), _PROTOCOL)
            except Exception:  # a class may raise anything; the checkpoint reports it with its key
                self._unwritable[key] = None
                changes[self.number, name(key)] = None
            else:
                changes[self.number, name(key)] = data

    def written(self) -> None:
        """The store has the changes of `collect`."""
        self._unwritten.clear()
        self._removed.clear()

    def note_unwritable(self) -> None:
        """A view was opened."""
        self.unwritable_in_view = {key: value for key, value in super().items() if key in self._unwritable}

    def evict(self, lent: set[object]) -> bool:
        """Forgets entries that the store has; returns whether any stay in memory or wait to be written."""
        kept = self._unwritten.keys() | self._unwritable.keys() | lent
        entries = {key: value for key, value in super().items() if key in kept}
        super().clear()
        super().update(entries)
        return bool(entries or self._removed)

    def fill(self, entries: dict[Any, Any]) -> None:
        """Puts all entries of an empty part into the store.

        Raises:
            KeyedStateError: when the store does not take them.
        """
        times_s, name = self.times_s or {}, self._cache.record_key
        records: dict[tuple[int, bytes], bytes | None] = {}
        for key, value in entries.items():
            try:
                records[self.number, name(key)] = pickle.dumps((key, value, times_s.get(key)), _PROTOCOL)
            except Exception:  # as in `collect`
                self[key] = value
        self._cache.store.write(records)
        self._count = len(entries)

    def forget(self) -> None:
        """The part leaves its table."""
        super().clear()
        for each in (self._unwritten, self._removed, self._unwritable):
            each.clear()
        self._count = 0

    def _stored(self) -> Iterator[tuple[Any, Any, float | None]]:
        if not self._count:
            return
        with contextlib.closing(self._cache.store.view()) as view:
            for _, data in view.scan(self.number):
                yield pickle.loads(data)  # noqa: S301  # written by this process

    def _value(self, key: object) -> Any:  # noqa: ANN401
        value = super().get(key, _ABSENT)
        if value is _ABSENT and self._count and key not in self._removed:
            data = self._cache.store.get(self.number, self._cache.record_key(key))
            if data is not None:
                key, value, _ = pickle.loads(data)  # noqa: S301  # written by this process
                self._cache.hold(self, len(data))
                super().__setitem__(key, value)
        self._last = key
        return value


class StoredTable(GroupedTable):
    """`GroupedTable` whose entries are in the store of a task."""

    def __init__(
        self, name: str, kind: str, place: Place, opened: Callable[[int], None], clock: Clock, cache: StateCache
    ) -> None:
        super().__init__(name, kind, place, opened, clock)
        self._cache = cache

    def before_write(self, entries: GroupEntries, key: object) -> None:
        """`StateTable.before_write`."""
        if entries.times_s is None:
            self._opened(entries.group)
        else:
            super().before_write(entries, key)
        assert isinstance(entries, StoredEntries)  # noqa: S101 - `make_part` makes no others
        entries.mark_for_write(key)

    def before_change(self, entries: GroupEntries) -> None:
        """`StateTable.before_change`."""
        self._opened(entries.group)
        assert isinstance(entries, StoredEntries)  # noqa: S101 - `make_part` makes no others
        entries.mark_last()

    def saved(self, group: int, cutoff_s: float, event_time_s: float | None) -> SavedEntries | None:
        """`GroupedTable.saved`; of the view, if one is open."""
        part, view = self.groups.get(group), self._cache.view
        if not isinstance(part, StoredEntries) or (view is None and not part):
            return None
        entries, times_s = part.entries(view)
        return self.saved_of(part, entries, None if part.times_s is None else times_s, cutoff_s, event_time_s)

    def drop(self, groups: Iterable[int]) -> None:
        """`GroupedTable.drop`."""
        groups = tuple(groups)
        for group in groups:
            part = self.groups.get(group)
            if isinstance(part, StoredEntries):
                part.forget()
                self._cache.store.drop(part.number)
        super().drop(groups)

    def make_part(self, group: int, version: int, times_s: dict[object, float] | None) -> GroupEntries:
        """`GroupedTable.make_part`."""
        return StoredEntries(group, version, times_s, self._cache, self._cache.part_number(self.name, group))

    def fill(self, part: GroupEntries, entries: dict[Any, Any]) -> None:
        """`GroupedTable.fill`."""
        assert isinstance(part, StoredEntries)  # noqa: S101 - `make_part` makes no others
        if part.group in self.groups:
            self.drop((part.group,))
        part.fill(entries)
