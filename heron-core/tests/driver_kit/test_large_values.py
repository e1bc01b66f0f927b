"""Values that exceed the size limit of the store."""

from __future__ import annotations

import queue
import random
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import ClassVar

import pytest

from heron.driver_kit.large_values import LargeValues, open_statemgr
from heron.errors import StateConflictError, StateError, StateUnavailableError
from heron.spi.driver import DriverRef
from heron.spi.statemgr import MUST_NOT_EXIST, NodeKind, StateManager, Versioned
from heron_statemgr_localfs.state_manager import LocalFsStateManager
from heron_testing.waiting import wait_until

_LIMIT = 16 * 1024
_KIND = NodeKind.PACKING_PLAN
_RANDOM = random.Random(6).randbytes(100 * 1024)
"""Seven parts, because random bytes cannot be compressed."""


class SmallStore(LocalFsStateManager):
    """Files with a size limit like that of ZooKeeper. It can fail before a given write."""

    max_value_bytes: ClassVar[int | None] = _LIMIT
    away_at: NodeKind | None = None
    largest = 0
    before_part: Callable[[], None] | None = None
    """Called once, before the next read of a part."""
    before_write: threading.Event | None = None
    """A write of a node of kind `_KIND` waits for this event."""
    waits = False
    after_list: Callable[[], None] | None = None
    """Called once, after the next listing of nodes."""

    def get(self, kind: NodeKind, topology: str) -> Versioned | None:
        call, self.before_part = (self.before_part, None) if kind is NodeKind.PART else (None, self.before_part)
        if call is not None:
            call()
        return super().get(kind, topology)

    def list(self, kind: NodeKind) -> tuple[str, ...]:
        names = super().list(kind)
        call, self.after_list = self.after_list, None
        if call is not None:
            call()
        return names

    def set(self, kind: NodeKind, topology: str, value: bytes, *, expected: int | None = None) -> int:
        if kind is self.away_at:
            message = "the store is away"
            raise StateUnavailableError(message)
        if kind is _KIND and self.before_write is not None:
            self.waits = True
            assert self.before_write.wait(5)
        self.largest = max(self.largest, len(value))
        return super().set(kind, topology, value, expected=expected)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SmallStore]:
    store = SmallStore.open({"root": str(tmp_path / "state")})
    yield store
    store.close()


@pytest.fixture
def manager(store: SmallStore) -> StateManager:
    return LargeValues(store, _LIMIT)


@pytest.mark.parametrize(
    "value",
    [b"", b"small", b"x" * _LIMIT, b"x" * (_LIMIT + 1), b"x" * 10**7, _RANDOM, b"\0heron-value 1 parts\n{}"],
    ids=["empty", "small", "at the limit", "compressed", "compressed much", "split", "like a marker"],
)
def test_each_value_round_trips_and_no_node_exceeds_the_limit(
    store: SmallStore, manager: StateManager, value: bytes
) -> None:
    """The plan of a large topology has megabytes."""
    version = manager.set(_KIND, "t", value)
    assert manager.get(_KIND, "t") == Versioned(value, version)
    assert store.largest <= _LIMIT
    assert manager.list(_KIND) == ("t",)


def test_a_value_within_the_limit_is_stored_unchanged(store: SmallStore, manager: StateManager) -> None:
    """People can read plans with the tools of the store, and older stores stay readable."""
    manager.set(_KIND, "t", b"{}")
    assert store.get(_KIND, "t") == Versioned(b"{}", 1)


@pytest.mark.parametrize("value", [b"small", _RANDOM[::-1]], ids=["by a small one", "by a large one"])
def test_the_parts_of_a_replaced_value_are_removed(store: SmallStore, manager: StateManager, value: bytes) -> None:
    """Each update replaces the plan, so old parts would fill the store."""
    manager.set(_KIND, "t", _RANDOM)
    former = store.list(NodeKind.PART)
    assert len(former) == 7
    manager.set(_KIND, "t", value)
    assert not set(former) & set(store.list(NodeKind.PART))


def test_removal_deletes_all_parts_of_the_value_only(store: SmallStore, manager: StateManager) -> None:
    """It also deletes parts from a killed writer, to which no node refers."""
    manager.set(_KIND, "t", _RANDOM)
    manager.set(_KIND, "t-2", _RANDOM)
    store.away_at = _KIND
    with pytest.raises(StateUnavailableError):
        manager.set(_KIND, "t", _RANDOM[::-1])
    assert len(store.list(NodeKind.PART)) == 21
    manager.delete(_KIND, "t")
    assert len(store.list(NodeKind.PART)) == 7
    present = manager.get(_KIND, "t-2")
    assert present is not None
    assert present.value == _RANDOM


def test_a_failed_write_keeps_the_old_value_and_leaves_no_parts(store: SmallStore, manager: StateManager) -> None:
    """Compare-and-set holds for split values too."""
    version = manager.set(_KIND, "t", _RANDOM)
    for expected in (MUST_NOT_EXIST, version + 1):
        with pytest.raises(StateConflictError):
            manager.set(_KIND, "t", _RANDOM[::-1], expected=expected)
    assert manager.get(_KIND, "t") == Versioned(_RANDOM, version)
    assert len(store.list(NodeKind.PART)) == 7
    assert manager.set(_KIND, "t", _RANDOM[::-1], expected=version) == version + 1


def test_a_store_failure_between_parts_keeps_the_old_value(store: SmallStore, manager: StateManager) -> None:
    """The node is written after its parts, so a reader never gets a part of a plan."""
    version = manager.set(_KIND, "t", _RANDOM)
    for kind in (NodeKind.PART, _KIND):
        store.away_at = kind
        with pytest.raises(StateUnavailableError):
            manager.set(_KIND, "t", _RANDOM[::-1])
        assert manager.get(_KIND, "t") == Versioned(_RANDOM, version)


def test_a_removed_part_is_an_error_with_a_remedy(store: SmallStore, manager: StateManager) -> None:
    """A person may have removed it. A reader must not take a part of a plan for the whole plan."""
    manager.set(_KIND, "t", _RANDOM)
    name = store.list(NodeKind.PART)[3]
    part = store.get(NodeKind.PART, name)
    assert part is not None
    store.set(NodeKind.PART, name, part.value[::-1])
    with pytest.raises(StateError, match=r"packingplans/t: a part of the value .* submit it again"):
        manager.get(_KIND, "t")
    with pytest.raises(StateError, match="a part of the value"):
        manager.watch(_KIND, "t", lambda _present: None)
    manager.set(_KIND, "t", b"mended")
    assert manager.get(_KIND, "t") == Versioned(b"mended", 2)


def test_a_watch_delivers_whole_values(manager: StateManager) -> None:
    """Parts are invisible to a watcher."""
    seen: queue.Queue[Versioned | None] = queue.Queue()
    manager.set(_KIND, "t", _RANDOM)
    watch = manager.watch(_KIND, "t", seen.put)
    assert seen.get_nowait() == Versioned(_RANDOM, 1)
    manager.set(_KIND, "t", b"small")
    assert seen.get(timeout=5) == Versioned(b"small", 2)
    manager.set(_KIND, "t", _RANDOM[::-1])
    assert seen.get(timeout=5) == Versioned(_RANDOM[::-1], 3)
    manager.delete(_KIND, "t")
    assert seen.get(timeout=5) is None
    watch.close()


def test_a_watch_delivers_a_value_that_was_replaced_while_its_parts_were_read(
    store: SmallStore, manager: StateManager
) -> None:
    """The new value arrives without a delay, because other watches of the process wait for this one."""
    replacements = iter([b"second", b"fourth"])

    def replace() -> None:
        manager.set(_KIND, "t", next(replacements))

    manager.set(_KIND, "t", _RANDOM)
    store.before_part = replace
    seen: queue.Queue[Versioned | None] = queue.Queue()
    watch = manager.watch(_KIND, "t", seen.put)
    assert seen.get_nowait() == Versioned(b"second", 2)
    store.before_part = replace
    manager.set(_KIND, "t", _RANDOM)
    assert seen.get(timeout=4) == Versioned(b"fourth", 4)
    manager.set(_KIND, "t", b"fifth")
    assert seen.get(timeout=4) == Versioned(b"fifth", 5), "the watch delivered a value twice"
    watch.close()


def test_a_manager_closes_while_a_watch_cannot_read_the_parts(store: SmallStore, manager: StateManager) -> None:
    """A store outage may last for hours, but an executor must end within seconds."""
    seen: queue.Queue[Versioned | None] = queue.Queue()
    reading = threading.Event()
    manager.set(_KIND, "t", b"small")
    manager.watch(_KIND, "t", seen.put)

    def go_away() -> None:
        store.before_part = go_away
        reading.set()
        message = "the store is away"
        raise StateUnavailableError(message)

    store.before_part = go_away
    manager.set(_KIND, "t", _RANDOM)
    assert reading.wait(5)
    closing = threading.Thread(target=manager.close, daemon=True)
    closing.start()
    closing.join(5)
    assert not closing.is_alive()
    assert seen.qsize() == 1


def test_a_permanently_missing_part_is_reported(
    store: SmallStore, manager: StateManager, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A new watch raises the same error as a read. A running watch logs it."""
    monkeypatch.setattr("heron.driver_kit.large_values._COMPLETE_WITHIN_S", 0.2)
    calls: list[Versioned | None] = []
    manager.set(_KIND, "t", b"small")
    manager.watch(_KIND, "t", calls.append)

    def remove_all() -> None:
        store.before_part = remove_all  # also removes parts that the writer restores
        for name in store.list(NodeKind.PART):
            store.delete(NodeKind.PART, name)

    store.before_part = remove_all
    manager.set(_KIND, "t", _RANDOM)
    wait_until(lambda: "cannot be read" in caplog.text, 5, "the watch logs the error")
    assert calls == [Versioned(b"small", 1)]
    with pytest.raises(StateError, match=r"packingplans/t: a part of the value .* submit it again"):
        manager.watch(_KIND, "t", calls.append)


@pytest.mark.parametrize("of_a_killed_writer", [False, True])
def test_a_value_that_is_written_during_its_removal_is_whole_or_absent(
    store: SmallStore, manager: StateManager, *, of_a_killed_writer: bool
) -> None:
    """The topology manager may write its plan, without the lock, while `heron kill` removes it."""
    if of_a_killed_writer:
        store.away_at = _KIND
        with pytest.raises(StateUnavailableError):
            manager.set(_KIND, "t", _RANDOM[::-1])
        store.away_at = None
    store.before_write, written = threading.Event(), threading.Event()

    def write() -> None:
        manager.set(_KIND, "t", _RANDOM)
        written.set()

    writer = threading.Thread(target=write)
    writer.start()
    wait_until(lambda: store.waits, 5, "the parts are written")

    def let_it_write() -> None:
        assert store.before_write is not None
        store.before_write.set()
        assert written.wait(5)

    store.after_list = let_it_write
    manager.delete(_KIND, "t")
    writer.join()
    assert manager.get(_KIND, "t") == Versioned(_RANDOM, 1)
    assert len(store.list(NodeKind.PART)) == 7


def test_a_held_value_is_never_split(manager: StateManager) -> None:
    """Its parts would remain after the holder ends. Locations are small."""
    hold = manager.hold(NodeKind.TMANAGER_LOCATION, "t", b"x" * 10**6)
    present = manager.get(NodeKind.TMANAGER_LOCATION, "t")
    assert present == Versioned(b"x" * 10**6, hold.epoch)
    hold.release()
    with pytest.raises(StateError, match="102400 bytes, too many for one node"):
        manager.hold(NodeKind.TMANAGER_LOCATION, "t", _RANDOM)


def test_only_a_store_with_a_limit_is_wrapped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files have no limit and need no wrapper."""
    monkeypatch.setitem(sys.modules, "stores_under_test", sys.modules[__name__])
    options: dict[str, object] = {"root": str(tmp_path)}
    for name, expected in (("SmallStore", LargeValues), ("LocalFsStateManager", LocalFsStateManager)):
        manager = open_statemgr(DriverRef("statemgr", "x", f"stores_under_test:{name}", options))
        assert type(manager) is expected
        manager.close()
