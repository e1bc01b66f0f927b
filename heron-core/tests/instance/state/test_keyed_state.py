"""Keyed state: handles, ownership, snapshots in slices, restores, migration."""

from __future__ import annotations

import pickle
import threading

import pytest

from heron.api import CounterState, ListState, MapState, State, StatefulComponent, ValueState
from heron.api.definition import (
    ComponentDefinition,
    ComponentKind,
    GroupingDefinition,
    GroupingKind,
    InputDefinition,
)
from heron.errors import CheckpointError, SerializationError, UsageError
from heron.instance.output.stream_routes import KeyMemo
from heron.instance.state.keyed_state import KeyedStateStore
from heron.instance.state.owned_groups import receives_by_key
from heron.planner.key_group import key_group
from heron_testing.fake_clock import FakeClock

GROUPS = 8
Saved = dict[int, bytes | None]


def new_store(
    owned: frozenset[int] | None = None, clock: FakeClock | None = None, *, single: bool = True
) -> KeyedStateStore:
    store = KeyedStateStore("count", 3, GROUPS, clock or FakeClock(), single=single)
    if owned is not None:
        store.set_owned(lambda: owned)
    return store


def taken(store: KeyedStateStore) -> Saved:
    """The payloads of a whole snapshot."""
    snapshot, found = store.snapshot(), dict[int, bytes | None]()
    while not snapshot.done:
        found.update(snapshot.next(0.0))
    return found


def restored(saved: Saved, owned: frozenset[int] | None = None) -> KeyedStateStore:
    store = new_store(owned)
    for group, payload in saved.items():
        if payload is not None and (owned is None or group in owned):
            store.load(group, payload)
    return store


def key_in(group: int) -> str:
    return next(f"key{number}" for number in range(10_000) if key_group((f"key{number}",), GROUPS) == group)


def test_handles_keep_what_they_are_given() -> None:
    """Each kind with its operations."""
    store = new_store()
    counts = store.state("counts", CounterState[str])
    values = store.state("values", ValueState[str, str], default="none")
    lists = store.state("lists", ListState[str, int])
    maps = store.state("maps", MapState[str, str, int])
    assert (counts.add("a"), counts.add("a", 4), counts.get("a"), counts.get("b")) == (1, 5, 5, 0)
    values.put("a", "x")
    assert (values.get("a"), values.get("b"), list(values.items())) == ("x", "none", [("a", "x")])
    lists.append("a", 1)
    lists.append("a", 2)
    lists.put("b", [3])
    assert (lists.get("a"), lists.get("c"), dict(lists.items())) == ((1, 2), (), {"a": (1, 2), "b": (3,)})
    lists.put("b", [])
    assert "b" not in lists
    maps.put("a", "f", 1)
    maps.put("a", "g", 2)
    assert (maps.get("a", "f"), maps.get("a", "h"), maps.fields("a")) == (1, None, {"f": 1, "g": 2})
    maps.remove_field("a", "f")
    assert dict(maps.items()) == {"a": {"g": 2}}
    maps.remove_field("a", "g")
    assert ("a" in maps, len(maps)) == (False, 0)
    counts.remove("a")
    counts.remove("a")
    assert (list(counts.keys()), len(counts), counts.get("a")) == ([], 0, 0)


def test_keys_may_change_while_they_are_read() -> None:
    """Authors emit and remove in one loop."""
    counts = new_store().state("counts", CounterState[int])
    for key in range(50):
        counts.add(key)
    for key in counts.keys():  # noqa: SIM118  # not a dict
        counts.remove(key)
    assert len(counts) == 0


@pytest.mark.parametrize("single", [True, False])
@pytest.mark.parametrize("key", ["a", 1.0, None, ("a", 1), (), (("a",), 2)])
def test_a_key_has_the_group_that_routes_its_tuples(key: object, *, single: bool) -> None:
    """Otherwise a task would receive tuples whose state it does not own."""
    route = KeyMemo(range(GROUPS), single=single or not isinstance(key, tuple))
    route[key]("row")
    (group,) = (task for task, rows in route.lists.items() if rows)
    assert new_store(frozenset({group}), single=single).owns(key)
    assert not new_store(frozenset(range(GROUPS)) - {group}, single=single).owns(key)


def test_a_key_of_another_task_is_refused() -> None:
    """A wrong key would make state that no restore brings back to the right task."""
    counts = new_store(frozenset({2})).state("counts", CounterState[str])
    key = key_in(5)
    with pytest.raises(
        UsageError,
        match=r"task 3 of 'count': keyed state 'counts': a key of type str is in key group 5 of 8, .* use the key of",
    ):
        counts.add(key)
    with pytest.raises(
        UsageError, match="keyed state 'counts': key value 1 of 1 is of type frozenset, which cannot be"
    ):
        counts.get(frozenset())  # type: ignore[arg-type]


def test_a_lost_group_is_dropped_and_a_new_group_is_empty() -> None:
    """A group that comes back later must not bring old values."""
    store = new_store(frozenset({1, 2}))
    counts = store.state("counts", CounterState[str])
    counts.add(key_in(1))
    counts.add(key_in(2))
    store.set_owned(lambda: frozenset({2, 3}))
    assert list(counts.keys()) == [key_in(2)]
    with pytest.raises(UsageError, match="does not own"):
        counts.get(key_in(1))
    store.set_owned(lambda: frozenset(range(GROUPS)))
    assert counts.get(key_in(1)) == 0
    assert set(taken(store)) == {2}


def test_without_checkpoints_a_tuple_of_another_plan_has_a_state() -> None:
    """It was on its way during an update; an error would lose it."""
    store = new_store()
    store.set_owned(lambda: frozenset({1, 2}), strict=False)
    counts = store.state("counts", CounterState[str])
    counts.add(key_in(1))
    counts.add(key_in(5))
    store.set_owned(lambda: frozenset({2, 5}), strict=False)
    counts.add(key_in(1))
    assert (counts.get(key_in(5)), counts.get(key_in(1))) == (1, 1)
    assert not store.owns(key_in(1))


@pytest.mark.parametrize(
    ("groupings", "expected"),
    [((), False), ((GroupingKind.SHUFFLE,), False), ((GroupingKind.SHUFFLE, GroupingKind.FIELDS), True)],
)
def test_only_inputs_by_key_bring_keys_of_another_plan(groupings: tuple[GroupingKind, ...], expected: bool) -> None:
    """With a shuffle grouping, a key of another task is an error of the topology, and stays one."""
    inputs = tuple(InputDefinition("lines", each.value, GroupingDefinition(each, ("word",))) for each in groupings)
    bolt = ComponentDefinition("count", ComponentKind.BOLT, "words:Count", 2, inputs=inputs)
    assert receives_by_key(bolt) is expected


def test_a_second_request_gives_the_same_handle() -> None:
    """Two handles with other options would contradict each other."""
    store = new_store()
    first = store.state("s", ValueState[str, int], default=1)
    assert store.state("s", ValueState, default=1) is first
    for kind, default, ttl_s in [
        (CounterState, None, None),
        (ValueState, 2, None),
        (ValueState, True, None),
        (ValueState, 1, 5),
    ]:
        with pytest.raises(UsageError, match=r"was asked for as value with default 1, ttl_s None .* use another name"):
            store.state("s", kind, default=default, ttl_s=ttl_s)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"name": ""}, "the name is not a text"),
        ({"kind": dict}, "is not one of 'CounterState', 'ListState', 'MapState', 'ValueState'"),
        ({"kind": CounterState, "default": 1}, "a counter has no default"),
        ({"default": []}, "the default is of type list"),
        ({"ttl_s": 0}, "ttl_s 0 is not a number of seconds above 0"),
        ({"ttl_s": 10**5_000}, "ttl_s <int of 16,610 bits> is not"),  # a clock could not subtract it
        ({"ttl_s": -(10**5_000)}, "ttl_s <int of 16,610 bits> is not"),
        ({"ttl_s": float("inf")}, "ttl_s inf"),
        ({"event_time": True}, "event_time=True needs ttl_s"),
    ],
)
def test_wrong_arguments_are_refused(arguments: dict[str, object], message: str) -> None:
    """Before the state exists."""
    store = new_store()
    with pytest.raises(UsageError, match=message):
        store.state(**{"name": "s", "kind": ValueState, **arguments})  # type: ignore[arg-type]
    assert not store.is_used


def test_a_default_that_python_does_not_write_is_named_shortly() -> None:
    """Its error would hide that of the name."""
    store = new_store()
    store.state("s", ValueState, default=10**5_000)
    with pytest.raises(UsageError, match=r"value with default <int of 16,610 bits>, .* use another name"):
        store.state("s", ValueState, default=1)


def test_a_snapshot_has_only_what_changed() -> None:
    """Checkpoints are incremental."""
    store = new_store()
    values = store.state("values", ValueState[str, object])
    for group in range(4):
        values.put(key_in(group), group)
    assert set(taken(store)) == {0, 1, 2, 3}
    assert taken(store) == {}
    values.put(key_in(1), "new")
    values.get(key_in(2))
    assert set(taken(store)) == {1}


def test_an_object_that_was_read_counts_as_changed() -> None:
    """Authors change it in place."""
    store = new_store()
    values = store.state("values", ValueState[str, list[int]])
    maps = store.state("maps", MapState[str, str, set[int]])
    lists = store.state("lists", ListState[str, list[int]])
    values.put(key_in(0), [1])
    maps.put(key_in(1), "f", {1})
    lists.append(key_in(2), [1])
    taken(store)
    value, field, listed = values.get(key_in(0)), maps.get(key_in(1), "f"), lists.get(key_in(2))
    assert value is not None
    assert field is not None
    value.append(2)
    field.add(2)
    listed[0].append(2)
    again = restored(taken(store))
    assert again.state("values", ValueState[str, list[int]]).get(key_in(0)) == [1, 2]
    assert again.state("maps", MapState[str, str, set[int]]).fields(key_in(1)) == {"f": {1, 2}}
    assert again.state("lists", ListState[str, list[int]]).get(key_in(2)) == ([1, 2],)


def test_a_snapshot_is_the_state_at_its_start() -> None:
    """The task goes on between the slices."""
    store = new_store()
    values = store.state("values", ValueState[str, list[int]])
    counts = store.state("counts", CounterState[str])
    for group in range(GROUPS):
        values.put(key_in(group), [group])
    snapshot = store.snapshot()
    found = dict(snapshot.next(0.0))
    assert len(found) == 1
    for group in range(GROUPS):
        value = values.get(key_in(group))
        assert value is not None
        value.append(99)
        counts.add(key_in(group))
    while not snapshot.done:
        found.update(snapshot.next(0.0))
    before = restored(found)
    assert dict(before.state("values", ValueState[str, list[int]]).items()) == {key_in(g): [g] for g in range(GROUPS)}
    assert len(before.state("counts", CounterState[str])) == 0
    assert set(taken(store)) == set(range(GROUPS))


def test_a_slice_ends_with_its_budget() -> None:
    """A large budget takes all groups at once."""
    store = new_store()
    counts = store.state("counts", CounterState[str])
    for group in range(4):
        counts.add(key_in(group))
    assert len(store.snapshot().next(1.0)) == 4


def test_an_abandoned_snapshot_is_taken_again() -> None:
    """Its payloads were not stored."""
    store = new_store()
    counts = store.state("counts", CounterState[str])
    counts.add(key_in(0))
    counts.add(key_in(1))
    store.snapshot().next(0.0)
    second = store.snapshot()  # abandons the first
    assert {group for group, _ in second.next(1.0)} == {0, 1}
    assert second.done
    second.abandon()
    assert set(taken(store)) == {0, 1}
    assert taken(store) == {}


def test_an_emptied_group_is_saved_as_empty_once() -> None:
    """A restore must not bring removed keys back."""
    store = new_store()
    counts = store.state("counts", CounterState[str])
    counts.add(key_in(0))
    counts.remove(key_in(0))
    assert taken(store) == {}
    counts.add(key_in(0))
    taken(store)
    counts.remove(key_in(0))
    lost = store.snapshot()
    assert lost.next(0.0) == [(0, None)]
    lost.abandon()
    assert taken(store) == {0: None}
    assert taken(store) == {}


@pytest.mark.parametrize("copied", [False, True])
def test_a_value_that_cannot_be_pickled_fails_the_snapshot_and_nothing_else(*, copied: bool) -> None:
    """Neither the other groups nor the write that needs the group at once."""
    store = new_store()
    values = store.state("values", ValueState[str, object])
    for group in range(4):
        values.put(key_in(group), group)
    values.put(key_in(1), threading.Lock())
    snapshot, found = store.snapshot(), dict[int, bytes | None]()
    if copied:
        values.get(key_in(1))
    found.update(snapshot.next(1.0))
    with pytest.raises(
        SerializationError,
        match="key group 1: keyed state 'values': a key of type str or its value of type lock cannot be",
    ):
        snapshot.next(1.0)
    assert snapshot.done
    assert set(found) == {0, 2, 3}
    values.put(key_in(1), "text")
    assert set(taken(store)) == {1}


def test_a_group_is_loaded_once_and_by_its_owner() -> None:
    """Two tasks that have saved one group contradict each other."""
    store = new_store()
    store.state("counts", CounterState[str]).add(key_in(2), 7)
    saved = taken(store)
    payload = saved[2]
    assert payload is not None
    again = restored(saved, frozenset({2}))
    assert again.state("counts", CounterState[str]).get(key_in(2)) == 7
    assert taken(again) == {}
    with pytest.raises(CheckpointError, match="key group 2: two tasks have saved this group"):
        again.load(2, payload)
    with pytest.raises(CheckpointError, match="key group 3: this task does not own the group"):
        again.load(3, payload)
    counts = again.state("counts", CounterState[str])
    again.clear()
    assert counts.get(key_in(2)) == 0
    again.load(2, payload)
    assert counts.get(key_in(2)) == 7


def test_a_state_of_another_kind_is_refused() -> None:
    """Whether it is loaded before or after the component asks for it."""
    store = new_store()
    store.state("s", CounterState[str]).add(key_in(0))
    saved = taken(store)
    message = "keyed state 's' was saved as counter, the component asks for list; give the new state another name"
    with pytest.raises(CheckpointError, match=message):
        restored(saved).state("s", ListState)
    late = new_store()
    late.state("s", ListState)
    with pytest.raises(CheckpointError, match=message):
        late.load(0, saved[0] or b"")


def test_a_state_that_the_component_no_longer_asks_for_is_kept() -> None:
    """The former code may be deployed again."""
    store = new_store()
    store.state("old", CounterState[str]).add(key_in(0), 3)
    again = restored(taken(store))
    again.state("new", CounterState[str]).add(key_in(0))
    last = restored(taken(again))
    assert last.state("old", CounterState[str]).get(key_in(0)) == 3


@pytest.mark.parametrize(
    ("payload", "message"),
    [
        (b"torn", "key group 1: the saved state cannot be read: UnpicklingError"),
        (pickle.dumps([1]), "key group 1: .* bytes are not a saved state"),
        (pickle.dumps({"format": 2}), "has format 2, this version of heron-core reads formats up to 1"),
        (pickle.dumps({"format": 1}), "has no part 'states'"),
    ],
)
def test_a_payload_that_cannot_be_read_changes_nothing(payload: bytes, message: str) -> None:
    """The restore fails before data flows."""
    store = new_store()
    with pytest.raises(CheckpointError, match=message):
        store.load(1, payload)
    assert not store.is_used


def test_a_class_that_is_gone_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """The author has renamed it."""
    store = new_store()
    store.state("values", ValueState[str, object]).put(key_in(1), Version(1))
    saved = taken(store)
    monkeypatch.delattr(f"{__name__}.Version")
    with pytest.raises(
        CheckpointError, match=r"key group 1: keyed state 'values': .*AttributeError.*Version.* the classes"
    ):
        new_store().load(1, saved[1] or b"")


class Version:
    def __init__(self, number: int) -> None:
        self.number = number


class Old(StatefulComponent):
    state_version = 1


class New(StatefulComponent):
    state_version = 2

    def migrate_keyed(self, name: str, old_version: int, key: object, value: int) -> str:
        return f"{name} {old_version} {key} {value}"

    def migrate(self, old_version: int, state: State) -> State:
        state.put("was", old_version)
        return state


@pytest.mark.parametrize("asked_first", [False, True])
def test_values_of_another_version_are_migrated(*, asked_first: bool) -> None:
    """The group is saved again in the new form."""
    store = new_store()
    store.serve(Old())
    store.state("v", ValueState[str, int]).put(key_in(0), 5)
    (payload,) = taken(store).values()
    again = new_store()
    again.serve(New())
    if asked_first:
        again.state("v", ValueState)
    again.load(0, payload or b"")
    expected = f"v 1 {key_in(0)} 5"
    assert again.state("v", ValueState[str, str]).get(key_in(0)) == expected
    saved = taken(again)
    assert set(saved) == {0}
    last = new_store()
    last.serve(New())
    last.load(0, saved[0] or b"")
    assert last.state("v", ValueState[str, str]).get(key_in(0)) == expected


def test_another_version_without_a_migration_is_refused() -> None:
    """With both versions."""
    store = new_store()
    store.serve(New())
    store.state("v", ValueState[str, int]).put(key_in(0), 5)
    payload = taken(store)[0] or b""
    older = new_store()
    older.serve(Old())
    older.load(0, payload)
    with pytest.raises(
        UsageError, match="Old: the saved keyed state 'v' has state_version 2, Old has 1; override migrate_keyed"
    ):
        older.state("v", ValueState)
    plain = new_store()
    plain.serve(object())
    plain.load(0, payload)
    with pytest.raises(UsageError, match="was saved with state_version 2, the component has none; derive it"):
        plain.state("v", ValueState)
