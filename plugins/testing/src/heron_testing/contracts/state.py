"""The contract suite of state backends."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from heron.api.keyed_state import ValueState
from heron.errors import KeyedStateError, SerializationError
from heron.instance.state.keyed_state import KeyedStateStore
from heron.instance.state.state_payload import decode_group
from heron.spi.state import MAX_KEY_BYTES, StateBackend, TaskStore
from heron_testing.contracts.driver import DriverContract, needed
from heron_testing.contracts.parts.state_calls import CALLS, KeyedCalls
from heron_testing.fake_clock import FakeClock
from heron_testing.faults import FULL_BYTES, Faults

__all__ = ["StateBackendContract", "TaskStoreContract"]

_GROUPS = 8
_MANY = 3000
_HOLDER = """
import json, sys
from pathlib import Path
from heron.driver_kit.loading import load_object
entry, options, folder = sys.argv[1:]
store = load_object(entry).open(json.loads(options)).create(Path(folder))
store.write({(1, b"key"): b"x" * 1_000_000})
print("holds", flush=True)
sys.stdin.read()
"""


class TaskStoreContract:
    """The cases for the store of a task; subclasses override the fixture `create`."""

    @pytest.fixture
    def create(self) -> Callable[[], TaskStore]:
        """Makes an empty store at each call."""
        raise NotImplementedError

    @pytest.fixture
    def store(self, create: Callable[[], TaskStore]) -> Iterator[TaskStore]:
        """The store under test."""
        made = create()
        yield made
        made.close()
        made.close()  # an exit may call it twice

    @pytest.mark.parametrize("size", [0, 1, 4096, 3_000_000])
    def test_a_value_comes_back(self, store: TaskStore, size: int) -> None:
        """Databases keep small and large values at different places."""
        store.write({(7, b"key"): bytes(size)})
        assert store.get(7, b"key") == bytes(size)

    def test_a_key_is_any_bytes_and_belongs_to_its_part(self, store: TaskStore) -> None:
        """Parts are key groups: a mixed-up part would be state in two tasks."""
        keys = [b"\0", b"\xff" * MAX_KEY_BYTES, b"a", b"a\0", b"", b"ab"]
        parts = [0, 1, 255, 256, 65_535, 65_536, 2**32 - 1]
        changes: dict[tuple[int, bytes], bytes | None] = {
            (part, key): b"%d" % part + key for part in parts for key in keys if key
        }
        store.write(changes)
        for (part, key), value in changes.items():
            assert store.get(part, key) == value
        view = store.view()
        for part in parts:
            assert dict(view.scan(part)) == {key: b"%d" % part + key for key in keys if key}
        assert dict(view.scan(2)) == {}
        view.close()

    def test_none_removes_and_a_missing_key_is_no_error(self, store: TaskStore) -> None:
        """A key that was added and removed between two writes is removed only."""
        store.write({(1, b"a"): b"1", (1, b"b"): b"2"})
        store.write({(1, b"a"): None, (1, b"c"): None, (1, b"b"): b"3"})
        assert (store.get(1, b"a"), store.get(1, b"b"), store.get(1, b"c")) == (None, b"3", None)

    def test_drop_removes_one_part(self, store: TaskStore) -> None:
        """A key group has moved to another task."""
        store.write({(part, b"%d" % number): b"x" for part in (1, 2, 3) for number in range(_MANY)})
        store.drop(2)
        store.drop(9)
        view = store.view()
        assert [len(dict(view.scan(part))) for part in (1, 2, 3)] == [_MANY, 0, _MANY]
        view.close()

    def test_a_view_is_of_one_instant(self, store: TaskStore) -> None:
        """A checkpoint contains the state at its marker, while tuples behind the marker change it."""
        before = {b"%d" % number: b"old" for number in range(_MANY)}
        store.write({(1, key): value for key, value in before.items()})
        view = store.view()
        store.write({(1, key): b"new" for key in list(before)[::2]})
        store.write({(1, key): None for key in list(before)[1::2]})
        store.write({(1, b"more"): b"new"})
        assert dict(view.scan(1)) == before
        store.drop(1)
        assert dict(view.scan(1)) == before
        view.close()
        view.close()
        assert store.get(1, b"0") is None

    def test_two_stores_of_one_place_do_not_mix(self, create: Callable[[], TaskStore]) -> None:
        """All tasks of a container have the same folder, and a task may hold its former store at a restart."""
        first, second = create(), create()
        first.write({(1, b"a"): b"first"})
        assert second.get(1, b"a") is None
        second.write({(1, b"a"): b"second"})
        second.close()
        assert first.get(1, b"a") == b"first"
        first.close()

    @pytest.mark.parametrize("seed", range(8))
    def test_keyed_state_is_as_that_of_dicts(self, store: TaskStore, seed: int) -> None:
        """The same calls give the same results, snapshots and restores, whatever is in the cache."""
        chance = random.Random(seed)  # noqa: S311 - repeatable
        clock = FakeClock()
        dicts, stored = KeyedCalls(KeyedStateStore("c", 1, _GROUPS, clock)), KeyedCalls(_keyed(store, clock))
        saved: dict[int, bytes] = {}
        for _ in range(6):
            for _ in range(chance.randrange(300)):
                call, key, number = chance.randrange(CALLS), f"key{chance.randrange(40)}", chance.randrange(9)
                assert stored.call(call, key, number) == dicts.call(call, key, number)
                if not chance.randrange(5):
                    stored.keyed.flush_if_many()
                clock.advance(chance.random())
            wanted, snapshot = dicts.keyed.snapshot(), stored.keyed.snapshot()
            expected = dict(wanted.next(10.0))
            found: dict[int, bytes | None] = {}
            while not snapshot.done:
                found.update(snapshot.next(0.0))
                call, key, number = chance.randrange(CALLS), f"key{chance.randrange(40)}", chance.randrange(9)
                assert stored.call(call, key, number) == dicts.call(call, key, number)
                stored.keyed.flush_if_many()
            assert _decoded(found) == _decoded(expected)
            saved = {group: data for group, data in {**saved, **found}.items() if data is not None}
        stored.keyed.clear()
        again = KeyedStateStore("c", 1, _GROUPS, clock)
        for group, data in saved.items():
            stored.keyed.load(group, data)
            again.load(group, data)
        assert stored.contents() == KeyedCalls(again).contents()

    def test_a_value_that_cannot_be_pickled_fails_the_checkpoint_and_stays(self, store: TaskStore) -> None:
        """As with dicts: the error names state and key, and the next checkpoint without the value succeeds."""
        keyed = _keyed(store, FakeClock())
        values = keyed.state("values", ValueState[str, object])
        lock = _Unpicklable()
        values.put("bad", lock)
        for number in range(1000):
            values.put(f"good{number}", number)
            keyed.flush_if_many()
        assert values.get("bad") is lock
        snapshot = keyed.snapshot()
        assert len(snapshot.next(10.0)) == _GROUPS - 1
        with pytest.raises(SerializationError, match=r"'values': .*of type _Unpicklable"):
            snapshot.next(10.0)
        snapshot.abandon()
        values.put("bad", 1)
        snapshot = keyed.snapshot()
        while not snapshot.done:
            snapshot.next(10.0)
        assert (values.get("bad"), values.get("good999"), len(values)) == (1, 999, 1001)


class StateBackendContract(TaskStoreContract, DriverContract):
    """Subclass it with the attributes of `DriverContract` and the fixtures `options` and `faults`."""

    family = "state"

    @pytest.fixture
    def create(self, options: dict[str, object], tmp_path: Path) -> Callable[[], TaskStore]:
        """Makes an empty store at each call, as the tasks of one container do."""

        def make() -> TaskStore:
            driver = self.driver_class.open(options)
            assert isinstance(driver, StateBackend)
            return driver.create(tmp_path)

        return make

    def test_a_full_disk_changes_nothing_and_a_later_write_succeeds(self, store: TaskStore, faults: Faults) -> None:
        """The task restarts, or its checkpoint fails; it must not go on with half of the changes."""
        store.write({(1, b"key"): b"old"})
        full = needed(self.driver_class.open({}), faults, "full")
        with full(), pytest.raises(KeyedStateError, match=r".+; .*free some space"):
            store.write({(1, b"key"): b"new", **{(2, b"%d" % each): bytes(1000) for each in range(FULL_BYTES // 200)}})
        assert store.get(1, b"key") == b"old"
        assert store.get(2, b"1") is None
        store.write({(1, b"key"): b"new"})
        assert store.get(1, b"key") == b"new"

    def test_a_place_that_cannot_be_used_is_named(self, create: Callable[[], TaskStore], faults: Faults) -> None:
        """Before the task has any state."""
        with needed(self.driver_class.open({}), faults, "away")(), pytest.raises(KeyedStateError, match=r"folder /"):
            create()
        create().close()

    def test_a_killed_process_leaves_no_entries_and_no_space(
        self, create: Callable[[], TaskStore], options: dict[str, object], tmp_path: Path
    ) -> None:
        """The truth is the checkpoint: entries of the former process would be newer than the restored state."""
        entry = f"{self.driver_class.__module__}:{self.driver_class.__qualname__}"
        command = [sys.executable, "-c", _HOLDER, entry, json.dumps(options), str(tmp_path)]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
            assert process.stdout is not None
            assert process.stdout.readline() == b"holds\n"
            other = create()
            os.kill(process.pid, signal.SIGKILL)
        again = create()
        assert (other.get(1, b"key"), again.get(1, b"key")) == (None, None)
        other.close()
        again.close()
        left = [path for path in tmp_path.rglob("*") if path.is_file()]
        assert sum(path.stat().st_size for path in left) < 1_000_000


class _Unpicklable:
    """An object that holds something of the process."""

    def __reduce__(self) -> str:
        msg = "belongs to the process"
        raise TypeError(msg)


def _keyed(store: TaskStore, clock: FakeClock) -> KeyedStateStore:
    return KeyedStateStore("c", 1, _GROUPS, clock, store=store, cache_bytes=200)


def _decoded(payloads: dict[int, bytes | None]) -> dict[int, object]:
    return {group: data and decode_group("test", data) for group, data in payloads.items()}
