"""Keyed state in a store: as with dicts, and only a part of it in memory."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pytest

from heron.api import CounterState, ValueState
from heron.errors import KeyedStateError
from heron.instance.state.keyed_state import KeyedStateStore
from heron.spi.state import TaskStore
from heron_testing.contracts.state import TaskStoreContract
from heron_testing.fake_clock import FakeClock
from heron_testing.memory_state import MemoryTaskStore


class TestMemory(TaskStoreContract):
    """The reference of the suite."""

    @pytest.fixture
    def create(self) -> Callable[[], TaskStore]:
        return MemoryTaskStore


class Full(MemoryTaskStore):
    """A store that takes nothing while it is full."""

    full = False

    def write(self, changes: Mapping[tuple[int, bytes], bytes | None]) -> None:
        if self.full:
            msg = "the disk is full; free some space"
            raise KeyedStateError(msg)
        super().write(changes)


def keyed(store: TaskStore, cache_bytes: int = 1000, *, single: bool = True) -> KeyedStateStore:
    return KeyedStateStore("count", 1, 4, FakeClock(), single=single, store=store, cache_bytes=cache_bytes)


def in_memory(state: KeyedStateStore, name: str) -> int:
    """The entries of a state that the cache has."""
    return sum(dict.__len__(part) for part in state._tables[name].groups.values())


def test_only_a_part_of_the_entries_is_in_memory() -> None:
    """That is what the store is for."""
    state = keyed(MemoryTaskStore())
    counts = state.state("counts", CounterState[int])
    for number in range(10_000):
        counts.add(number)
        state.flush_if_many()
        assert in_memory(state, "counts") <= 300
    assert sum(count for _, count in counts.items()) == len(counts) == 10_000
    assert in_memory(state, "counts") <= 300


def test_an_object_stays_the_same_until_the_call_ends() -> None:
    """The author changes it in place, after reads of other keys that fill the cache."""
    state = keyed(MemoryTaskStore())
    values = state.state("values", ValueState[int, list[int]])
    for number in range(2000):
        values.put(number, [])
        state.flush_if_many()
    first = values.get(0)
    assert first is not None
    for number in range(1, 2000):
        assert values.get(number) == []
    first.append(1)
    assert values.get(0) is first
    for _ in range(3):
        state.flush_if_many()
    for number in range(1, 2000):
        values.get(number)
        state.flush_if_many()
    assert values.get(0) == [1]
    assert values.get(0) is not first


def test_keys_that_are_equal_are_one_key_and_long_keys_are_keys() -> None:
    """As with dicts, also when the entry is not in memory."""
    state = keyed(MemoryTaskStore(), cache_bytes=0)
    counts = state.state("counts", CounterState[object])
    long = "x" * 10_000
    for key in (1, 1.0, True, long, long + "y", None):
        counts.add(key)
        assert len(state.snapshot().next(1.0)) == 1  # writes all changes, so nothing has to stay in memory
    assert {key: counts.get(key) for key in (True, long, long + "y", None)} == {1: 3, long: 1, long + "y": 1, None: 1}
    assert len(list(counts.keys())) == 4


def test_a_tuple_is_several_fields_or_one_value() -> None:
    """As it is for routes."""
    for single in (True, False):
        state = keyed(MemoryTaskStore(), cache_bytes=0, single=single)
        counts = state.state("counts", CounterState[object])
        counts.add(("a", 1))
        assert counts.get(("a", 1.0)) == 1


def test_a_full_store_keeps_the_changes_for_later() -> None:
    """The task is not asked again for what it changed; its checkpoint fails, and the groups stay changed."""
    store = Full()
    state = keyed(store)
    counts = state.state("counts", CounterState[int])
    store.full = True
    for number in range(1000):
        counts.add(number)
    with pytest.raises(KeyedStateError, match="the disk is full"):
        state.flush_if_many()
    with pytest.raises(KeyedStateError, match="the disk is full"):
        state.snapshot()
    store.full = False
    state.flush_if_many()
    assert len(state.snapshot().next(1.0)) == 4
    assert [counts.get(number) for number in (0, 999)] == [1, 1]


def test_a_group_that_is_lost_leaves_nothing() -> None:
    """It comes back from a checkpoint of another task, perhaps without some of its keys."""
    store = MemoryTaskStore()
    state = keyed(store)
    counts = state.state("counts", CounterState[int])
    for number in range(1000):
        counts.add(number)
    state.set_owned(lambda: frozenset({1}))
    state.snapshot()
    kept = [key for key in range(1000) if state.owns(key)]
    state.set_owned(lambda: frozenset(range(4)))
    assert sorted(counts.keys()) == kept
    assert len(counts) == len(kept)
    state.close()
