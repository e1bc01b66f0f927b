"""The keyed state of a task, by key group."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable

from heron.api.state import CounterState
from heron.clock import Clock
from heron.planner.key_group import key_group

__all__ = ["KeyedSnapshot", "KeyedStateStore"]


class KeyedSnapshot:
    """The key groups at one instant, as bytes."""

    def __init__(self, items: list[tuple[int, bytes | None]]) -> None:
        self._items = items
        self.done = False

    def next(self, budget_s: float) -> list[tuple[int, bytes | None]]:
        """The next groups; takes about `budget_s`."""
        del budget_s
        self.done = True
        return self._items

    def abandon(self) -> None:
        """The groups are changed again."""


class _Counters(CounterState):
    def __init__(self, store: KeyedStateStore, name: str) -> None:
        self._store = store
        self._name = name

    def add(self, key: object, amount: int = 1) -> int:
        values = self._store.values.setdefault(self._store.group(key), {}).setdefault(self._name, {})
        values[key] = values.get(key, 0) + amount
        return values[key]


class KeyedStateStore:
    """Counters by group, name and key."""

    def __init__(self, component: str, task_id: int, groups: int, clock: Clock) -> None:
        del component, task_id, clock
        self._groups = groups
        self.values: dict[int, dict[str, dict[object, int]]] = {}
        self._owned: Callable[[], frozenset[int]] = frozenset

    def set_owned(self, owned: Callable[[], frozenset[int]]) -> None:
        """Replaces the groups that the task owns; `owned` is called when they are needed."""
        self._owned = owned

    def group(self, key: object) -> int:
        """The key group of a key."""
        return key_group(key if isinstance(key, tuple) else (key,), self._groups)

    def owns(self, key: object) -> bool:
        """Whether the task owns the group of a key."""
        return self.group(key) in self._owned()

    def state(self, name: str, kind: type[CounterState]) -> CounterState:
        """The state of this name."""
        del kind
        return _Counters(self, name)

    def clear(self) -> None:
        """Removes everything."""
        self.values.clear()

    def load(self, group: int, payload: bytes) -> None:
        """Restores a group."""
        self.values[group] = pickle.loads(payload)  # noqa: S301  # what this topology has saved

    def mark_changed(self, groups: Iterable[int]) -> None:
        """These groups belong to the next snapshot."""

    def snapshot(self) -> KeyedSnapshot:
        """The groups that have changed since the last snapshot."""
        return KeyedSnapshot([(group, pickle.dumps(values)) for group, values in self.values.items()])
