"""The keyed state of one task. Belongs to the task thread.

State is kept by key group: `heron.planner.key_group` places a key, as it does for routes. A change marks its group.
A snapshot is the state at the instant of its start, of the groups that changed since the one before. They are pickled
in slices. A group that is about to change before its turn is pickled first (copy on write). So the task never waits
for more than one group.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Final, TypeVar, get_origin

from heron.api.keyed_state import CounterState, GroupEntries, KeyedState, ListState, MapState, ValueState, is_frozen
from heron.api.names import is_text
from heron.author_text import short_text
from heron.clock import Clock
from heron.errors import CheckpointError, KeyedStateError, UsageError, known
from heron.instance.state.owned_groups import OwnedGroups
from heron.instance.state.state_migration import StateMigration
from heron.instance.state.state_payload import decode_group, encode_group
from heron.instance.state.state_snapshot import StateSnapshot
from heron.instance.state.state_table import GroupedTable
from heron.spi.state import TaskStore

if TYPE_CHECKING:  # tasks that keep their state in dicts need not import it
    from heron.instance.state.stored_state import StateCache

__all__ = ["KeyedStateStore"]

S = TypeVar("S", bound=KeyedState[Any])

_CACHE_BYTES: Final = 32 * 1024 * 1024
"""The size of the records whose entries a task keeps in memory; as objects they may need several times as much."""

_KINDS: dict[object, str] = {each: each.kind for each in (ValueState, CounterState, ListState, MapState)}


class KeyedStateStore:
    """All keyed states of a task."""

    def __init__(
        self,
        component: str,
        task_id: int,
        groups: int,
        clock: Clock,
        *,
        single: bool = True,
        store: TaskStore | None = None,
        cache_bytes: int = _CACHE_BYTES,
    ) -> None:
        """`groups` is the topology's number of key groups; the task owns all of them until `set_owned`.

        `single`: see `has_single_keys`. `store` holds the entries, and a cache of `cache_bytes`
        bytes; None for dicts.
        """
        self._clock = clock
        self._owner = f"task {task_id} of {component!r}"
        self._owned = OwnedGroups(self._owner, groups, self._groups_changed, single=single)
        self.owns = self._owned.has_key
        """`TopologyContext.owns`."""
        self._migration = StateMigration(self._owner)
        self._tables: dict[str, GroupedTable] = {}
        self._handles: dict[str, tuple[tuple[object, ...], KeyedState[Any]]] = {}
        self._changed: set[int] = set()
        self._saved: set[int] = set()  # groups of which a stored payload may be the newest
        self._loaded: set[int] = set()
        self._snapshot: StateSnapshot | None = None
        self._cache: StateCache | None = None
        if store is not None:
            from heron.instance.state.stored_state import StateCache  # noqa: PLC0415  # see above

            self._cache = StateCache(store, self._owned.encoded, cache_bytes)

    @property
    def is_used(self) -> bool:
        """Whether there is a state: the component asked for one, or one was loaded."""
        return bool(self._tables)

    def held_parts(self) -> dict[str, list[GroupEntries]]:
        """The entries in memory of each state, by key group. Safe in any thread; another one may change them."""
        return {name: list(table.groups.values()) for name, table in list(self._tables.items())}

    def serve(self, component: object) -> None:
        """Uses the `state_version` and `migrate_keyed` of this component. To be called before its `initialize`."""
        self._migration.serve(component)
        for table in self._tables.values():
            table.version = self._migration.version

    def set_owned(self, owned: Callable[[], frozenset[int]], *, strict: bool = True) -> None:
        """Replaces the groups that the task owns; the entries of groups that it loses are dropped.

        `owned` is called when the groups are needed: at once if there is a state. If not `strict`, keys of other groups
        have a state too: see `receives_by_key`.
        """
        self._owned.set(owned, strict=strict)
        if self.is_used:
            self._owned.update()

    def _groups_changed(self, owned: frozenset[int]) -> None:
        lost = {group for table in self._tables.values() for group in table.groups} - owned
        if self._snapshot is not None:
            for group in lost:
                self._snapshot.freeze(group)
        for table in self._tables.values():
            table.drop(lost)
        self._changed -= lost
        self._saved -= lost
        self._loaded -= lost

    def state(
        self, name: str, kind: type[S], *, default: object = None, ttl_s: float | None = None, event_time: bool = False
    ) -> S:
        """`TopologyContext.keyed_state`."""
        made_of: type[S] = get_origin(kind) or kind
        _check(self._owner, name, made_of, default, ttl_s, event_time=event_time)
        arguments = (_KINDS[made_of], type(default), default, ttl_s, event_time)
        if name in self._handles:
            before, handle = self._handles[name]
            if before != arguments:
                msg = (
                    f"{self._owner}: keyed state {name!r} was asked for as {before[0]} with default "
                    f"{short_text(before[2])}, ttl_s {before[3]} and event_time {before[4]}, and now as "
                    f"{arguments[0]} with {short_text(default)}, {ttl_s} and {event_time}; "
                    "use another name, or the same arguments"
                )
                raise UsageError(msg)
            return handle  # type: ignore[return-value]  # its kind is among the arguments
        table = self._table(name, _KINDS[made_of])
        self._migrate_table(table)
        table.expire(ttl_s, event_time=event_time)
        made = made_of(table, default) if made_of is ValueState else made_of(table)  # type: ignore[call-arg]  # see _check
        self._handles[name] = (arguments, made)
        return made

    def snapshot(self) -> StateSnapshot:
        """Begins a snapshot of the groups that changed since the last one; abandons an unfinished last one.

        The caller abandons a finished one that was not stored.

        Raises:
            KeyedStateError: when the store of the entries fails; all groups stay changed.
        """
        if self._snapshot is not None and not self._snapshot.done:
            self._snapshot.abandon()
        taken = {name: (table.cutoff_s(), table.event_time_s) for name, table in self._tables.items()}
        for table in self._tables.values():
            self._changed.update(table.expired_groups())
        groups, self._changed = sorted(self._changed), set()
        for table in self._tables.values():
            for group in groups:
                if group in table.groups:
                    table.groups[group].guarded = True
        if self._cache is not None and groups:
            self._open_view(self._cache, groups)

        def encode(group: int) -> bytes | None:
            return self._encode(group, taken)

        tables = self._tables.values()
        groups = [group for group in groups if group in self._saved or any(each.groups.get(group) for each in tables)]
        on_encoded = None if self._cache is None else self._cache.close_view
        self._snapshot = StateSnapshot(groups, encode, self.mark_changed, self._clock, on_encoded)
        return self._snapshot

    def flush_if_many(self) -> None:
        """Between two calls of user code: a store receives what changed.

        Raises:
            KeyedStateError: when the store does not take it.
        """
        if self._cache is not None:
            self._cache.flush_if_many()

    def close(self) -> None:
        """Gives up the state: a store is removed."""
        if self._cache is not None:
            self._cache.close()

    def _open_view(self, cache: StateCache, groups: Iterable[int]) -> None:
        try:
            cache.open_view()
        except KeyedStateError:
            self.mark_changed(groups)
            raise

    def load(self, group: int, payload: bytes) -> None:
        """Loads a group that a snapshot of this component returned; the group is not changed then.

        Raises:
            CheckpointError: when the group was loaded already, or the task does not own it; when the payload cannot be
                read, or has a state of another kind than the component asks for. Nothing was changed.
            UsageError: when the component cannot migrate it.
        """
        place = _place(self._owner, group)
        if group in self._loaded:
            msg = f"{place}: two tasks have saved this group; use another checkpoint"
            raise CheckpointError(msg)
        if not self._owned.has(group):
            msg = f"{place}: this task does not own the group, so it cannot load it; load it in the task that owns it"
            raise CheckpointError(msg)
        found = decode_group(place, payload)
        for name, saved in found.items():
            if name in self._tables and self._tables[name].kind != saved.kind:
                raise _other_kind(self._owner, name, saved.kind, self._tables[name].kind)
        migrated = {
            name: self._migration.migrated(name, saved) if name in self._handles else saved
            for name, saved in found.items()
        }
        for name, saved in migrated.items():
            self._table(name, saved.kind).load(group, saved)
        self._loaded.add(group)
        self._saved.add(group)
        if any(migrated[name] is not found[name] for name in found):
            self._changed.add(group)

    def clear(self) -> None:
        """Drops all entries and the snapshot that is under way; handles stay valid."""
        if self._snapshot is not None:
            self._snapshot.abandon()
            self._snapshot = None
        for table in self._tables.values():
            table.drop(tuple(table.groups))
            table.event_time_s = None
        self._tables = {name: table for name, table in self._tables.items() if name in self._handles}
        self._changed.clear()
        self._saved.clear()
        self._loaded.clear()

    def _table(self, name: str, kind: str) -> GroupedTable:
        table = self._tables.get(name)
        if table is None:
            make = GroupedTable if self._cache is None else self._cache.make_table
            table = make(name, kind, self._owned.group_of, self._open, self._clock)
            table.version = self._migration.version
            self._tables[name] = table
        elif table.kind != kind:
            raise _other_kind(self._owner, name, table.kind, kind)
        return table

    def _open(self, group: int) -> None:
        if self._snapshot is not None and self._cache is None:  # a view does not change with the group
            self._snapshot.freeze(group)
        self._changed.add(group)

    def mark_all_changed(self) -> None:
        """Everything belongs to the next snapshot."""
        self.mark_changed({group for table in self._tables.values() for group in table.groups} | self._saved)

    def mark_changed(self, groups: Iterable[int]) -> None:
        """These groups belong to the next snapshot, as their stored payloads do not count or are to be replaced."""
        marked = [group for group in groups if self._owned.has(group)]
        self._changed.update(marked)
        self._saved.update(marked)

    def _encode(self, group: int, taken: dict[str, tuple[float, float | None]]) -> bytes | None:
        found = {name: self._tables[name].saved(group, *times_s) for name, times_s in taken.items()}
        entries = {name: saved for name, saved in found.items() if saved is not None}
        if not entries:
            self._saved.discard(group)
            return None
        self._saved.add(group)
        return encode_group(_place(self._owner, group), entries)

    def _migrate_table(self, table: GroupedTable) -> None:
        """Brings loaded entries to the version of the component."""
        for group in tuple(table.groups):
            saved = table.saved(group, -math.inf, table.event_time_s)
            if saved is not None and saved.version != self._migration.version:
                table.load(group, self._migration.migrated(table.name, saved))
                self._changed.add(group)


def _place(owner: str, group: int) -> str:
    return f"{owner}: key group {group}"


def _other_kind(owner: str, name: str, saved: str, asked: str) -> CheckpointError:
    return CheckpointError(
        f"{owner}: keyed state {name!r} was saved as {saved}, the component asks for {asked}; "
        "give the new state another name, or use another checkpoint"
    )


def _check(owner: str, name: str, kind: object, default: object, ttl_s: float | None, *, event_time: bool) -> None:
    where = f"{owner}: keyed state {short_text(name)}"
    if not is_text(name):
        msg = f"{where}: the name is not a text of at least one character, without lone surrogates"
    elif kind not in _KINDS:
        kinds = known(each.__name__ for each in (ValueState, CounterState, ListState, MapState))
        msg = f"{where}: kind {short_text(kind)} is not one of {kinds}"
    elif default is not None and kind is not ValueState:
        msg = f"{where}: a {_KINDS[kind]} has no default; leave it out"
    elif not is_frozen(default):
        msg = (
            f"{where}: the default is of type {type(default).__name__}, and changes of it would be lost; leave it "
            "out, and `put` a new object when `get` returns None"
        )
    elif ttl_s is not None and not 0 < ttl_s <= sys.float_info.max:
        msg = (
            f"{where}: ttl_s {short_text(ttl_s)} is not a number of seconds above 0; leave it out for entries that do "
            "not expire"
        )
    elif event_time and ttl_s is None:
        msg = f"{where}: event_time=True needs ttl_s, the time to live in seconds"
    else:
        return
    raise UsageError(msg)
