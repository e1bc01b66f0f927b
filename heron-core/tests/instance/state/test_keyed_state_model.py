"""Keyed state against a model that copies everything, with snapshots between any two operations."""

from __future__ import annotations

import copy

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from heron.api import CounterState, ListState, MapState, ValueState
from heron.errors import UsageError
from heron.instance.state.keyed_state import KeyedStateStore
from heron_testing.fake_clock import FakeClock

GROUPS = 4
TTL_S = 10.0
Model = dict[str, dict[str, object]]

KEYS = st.sampled_from([f"key{number}" for number in range(12)])
OPERATIONS = st.lists(
    st.one_of(
        st.tuples(st.sampled_from(["add", "put", "change", "append", "field", "brief"]), KEYS, st.integers(0, 9)),
        st.tuples(st.sampled_from(["remove"]), KEYS, st.integers(0, 4)),
        st.tuples(st.sampled_from(["snapshot", "next", "abandon", "wait"]), st.just(""), st.integers(1, 7)),
    ),
    max_size=60,
)


class Task:
    """A store with its handles."""

    def __init__(self, clock: FakeClock) -> None:
        self.store = KeyedStateStore("count", 1, GROUPS, clock)
        self.counts = self.store.state("counts", CounterState[str])
        self.values = self.store.state("values", ValueState[str, list[int]])
        self.lists = self.store.state("lists", ListState[str, int])
        self.maps = self.store.state("maps", MapState[str, int, int])
        self.brief = self.store.state("brief", CounterState[str], ttl_s=TTL_S)

    def contents(self) -> Model:
        """Return all that the handles give."""
        return {
            "counts": dict(self.counts.items()),
            "values": dict(self.values.items()),
            "lists": {key: list(values) for key, values in self.lists.items()},
            "maps": dict(self.maps.items()),
            "brief": dict(self.brief.items()),
        }


class Plain:
    """The same operations on dicts."""

    def __init__(self) -> None:
        self.states: Model = {name: {} for name in ("counts", "values", "lists", "maps", "brief")}
        self.written_s: dict[str, float] = {}

    def expire(self, now_s: float) -> None:
        """Remove what is too old."""
        for key in [key for key, time_s in self.written_s.items() if time_s <= now_s - TTL_S]:
            del self.written_s[key]
            del self.states["brief"][key]


def operate(task: Task, plain: Plain, operation: tuple[str, str, int], now_s: float) -> None:
    """Do an operation on both."""
    name, key, number = operation
    states = plain.states
    if name == "add":
        states["counts"][key] = states["counts"].get(key, 0) + number  # type: ignore[operator]
        assert task.counts.add(key, number) == states["counts"][key]
    elif name == "brief":
        states["brief"][key] = states["brief"].get(key, 0) + number  # type: ignore[operator]
        plain.written_s[key] = now_s
        assert task.brief.add(key, number) == states["brief"][key]
    elif name == "put":
        task.values.put(key, [number])
        states["values"][key] = [number]
    elif name == "change":
        value = task.values.get(key)
        assert value == states["values"].get(key)
        if value is not None:
            value.append(number)
            states["values"][key].append(number)  # type: ignore[attr-defined]
    elif name == "append":
        task.lists.append(key, number)
        states["lists"].setdefault(key, []).append(number)  # type: ignore[attr-defined]
    elif name == "field":
        task.maps.put(key, number % 3, number)
        states["maps"].setdefault(key, {})[number % 3] = number  # type: ignore[index]
    else:
        handle = (task.counts, task.values, task.lists, task.maps, task.brief)[number]
        handle.remove(key)
        states[("counts", "values", "lists", "maps", "brief")[number]].pop(key, None)
        if number == 4:
            plain.written_s.pop(key, None)


def check_restored(clock: FakeClock, stored: dict[int, bytes], owned: frozenset[int], expected: Model) -> None:
    """A task with these groups has the stored entries of their keys, and nothing to save."""
    part = Task(clock)
    part.store.set_owned(lambda: owned)
    for group in owned & set(stored):
        part.store.load(group, stored[group])
    assert part.store.snapshot().done
    for name, entries in part.contents().items():
        assert entries == {key: value for key, value in expected[name].items() if part.store.owns(key)}


@settings(max_examples=200, deadline=None)
@given(operations=OPERATIONS)
def test_what_is_stored_is_the_state_at_the_last_complete_snapshot(operations: list[tuple[str, str, int]]) -> None:
    """Whatever changes between its slices, and whatever snapshots were abandoned before."""
    clock = FakeClock()
    task, plain = Task(clock), Plain()
    stored: dict[int, bytes] = {}
    snapshot, expected = task.store.snapshot(), copy.deepcopy(plain.states)
    found: dict[int, bytes | None] = {}
    for operation in [*operations, ("snapshot", "", 1), *[("next", "", 1)] * (GROUPS + 1)]:
        if operation[0] == "wait":
            clock.advance(operation[2])
            plain.expire(clock.wall_s())
        elif operation[0] == "abandon":
            snapshot.abandon()
            found = {}
        elif operation[0] == "snapshot":
            if found or not snapshot.done:
                snapshot.abandon()
            snapshot, expected, found = task.store.snapshot(), copy.deepcopy(plain.states), {}
        elif operation[0] == "next":
            found.update(snapshot.next(0.0))
            if snapshot.done:
                stored = {group: data for group, data in {**stored, **found}.items() if data is not None}
                found = {}
        else:
            operate(task, plain, operation, clock.wall_s())
        assert task.contents() == plain.states
    for owned in (frozenset({0, 1}), frozenset({2, 3})):
        check_restored(clock, stored, owned, expected)


def test_a_wall_clock_that_goes_back_keeps_entries_longer() -> None:
    """It removes nothing, and no entry stays forever."""
    clock = FakeClock()
    brief = Task(clock).brief
    brief.add("a")
    clock.jump_wall(-100)
    brief.add("b")
    clock.advance(TTL_S)
    assert dict(brief.items()) == {"a": 1}
    clock.advance(100)
    assert dict(brief.items()) == {}


def test_event_time_expires_entries_and_survives_a_restore() -> None:
    """The time of the task is saved with its groups."""
    store = KeyedStateStore("count", 1, 1, FakeClock())
    seen = store.state("seen", CounterState[str], ttl_s=5, event_time=True)
    with pytest.raises(UsageError, match="keyed state 'seen': a write before the first `advance`"):
        seen.add("a")
    with pytest.raises(UsageError, match="event time nan s is not a finite number"):
        seen.advance(float("nan"))
    seen.advance(100)
    seen.add("a")
    seen.advance(103)
    seen.advance(1)
    seen.add("b")
    ((_, payload),) = store.snapshot().next(1.0)
    again = KeyedStateStore("count", 1, 1, FakeClock())
    again.load(0, payload or b"")
    loaded = again.state("seen", CounterState[str], ttl_s=5, event_time=True)
    assert dict(loaded.items()) == {"a": 1, "b": 1}
    loaded.advance(105)
    assert dict(loaded.items()) == {"b": 1}
    with pytest.raises(UsageError, match="keyed state 'plain': expires by no event time"):
        again.state("plain", CounterState[str]).advance(1)
