"""The contract suite of state managers, with its faults: racing writers, killed holders and writers, hostile names.

The test of a driver::

    class TestMyStateManager(StateManagerContract):
        name = "mine"
        driver_class = MyStateManager

        @pytest.fixture
        def options(self, tmp_path: Path) -> dict[str, object]:
            return {"root": str(tmp_path / "state")}

        @pytest.fixture
        def faults(self, tmp_path: Path) -> Faults:
            return file_faults(tmp_path / "state")
"""

from __future__ import annotations

import functools
import os
import queue
import subprocess
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from heron.errors import StateConflictError, StateError, StateUnavailableError
from heron.spi.statemgr import MUST_NOT_EXIST, NodeKind, StateManager, Versioned
from heron_testing.contracts.driver import requires
from heron_testing.contracts.fault_cases.statemgr_faults import StateManagerFaultCases
from heron_testing.contracts.parts.second_process import pattern, second_process
from heron_testing.contracts.parts.statemgr_first_use import StateManagerFirstUseCases
from heron_testing.waiting import wait_until

__all__ = ["Spawn", "StateManagerContract"]

_LARGE_BYTES = 5 * 1024 * 1024  # a plan of some 10,000 instances
_CHANGE_S = 5.0  # the contract says 1 s; a loaded test machine may take longer

_SECRET = b"a value that nobody else may read" * 8

_GONE_S = 30.0  # a store may wait for the end of a killed holder's session

_HOSTILE_NAMES = ["", ".", "..", "../escape", "a/b", "/etc/passwd", "a\0b", "a\nb", ".hidden", "a" * 5000, "ü"]

Spawn = Callable[..., "subprocess.Popen[str]"]


class StateManagerContract(StateManagerFaultCases, StateManagerFirstUseCases):
    """Subclass it with `name`, `driver_class`, the fixture `options`, and `faults` if a flag of the driver needs it.

    Override `fresh_options` for a store on a server.
    """

    @pytest.fixture
    def open_manager(self, options: dict[str, object]) -> Iterator[Callable[[], StateManager]]:
        """A function that opens another manager of the same store; the fixture closes all managers at the end."""
        opened: list[StateManager] = []

        def open_one() -> StateManager:
            manager = self.driver_class.open(options)
            opened.append(manager)
            return manager

        yield open_one
        for manager in opened:
            manager.close()

    @pytest.fixture
    def manager(self, open_manager: Callable[[], StateManager]) -> StateManager:
        """The manager under test, on an empty store."""
        return open_manager()

    @pytest.fixture
    def spawn(self, options: dict[str, object]) -> Iterator[Spawn]:
        """A function that starts a process that uses the same store; the fixture kills the processes at the end."""
        started: list[subprocess.Popen[str]] = []

        def start(action: str, kind: NodeKind, topology: str, count: int = 0) -> subprocess.Popen[str]:
            words = second_process(self.family, self.driver_class, options, action, kind.value, topology, str(count))
            process = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
            started.append(process)
            assert _line(process) == "ready"
            return process

        yield start
        for process in started:
            _kill(process)

    # -- values and versions

    def test_a_node_that_is_not_there_is_none_and_its_removal_is_no_error(self, manager: StateManager) -> None:
        """Commands clean up after runs that wrote only their first nodes."""
        assert manager.get(NodeKind.TOPOLOGY, "t") is None
        assert manager.list(NodeKind.TOPOLOGY) == ()
        manager.delete(NodeKind.TOPOLOGY, "t")

    def test_versions_start_at_1_and_grow(self, manager: StateManager) -> None:
        """Readers find the newer of two values by the version alone."""
        assert manager.set(NodeKind.TOPOLOGY, "t", b"one") == 1
        second = manager.set(NodeKind.TOPOLOGY, "t", b"two")
        assert second > 1
        assert manager.get(NodeKind.TOPOLOGY, "t") == Versioned(b"two", second)

    @pytest.mark.parametrize("value", [b"", b"\0\n\r\xff" * 64, b"{}"], ids=["empty", "binary", "json"])
    def test_any_bytes_come_back_as_they_were(self, manager: StateManager, value: bytes) -> None:
        """Plans can be compressed, so a value need not be text."""
        version = manager.set(NodeKind.PHYSICAL_PLAN, "t", value)
        assert manager.get(NodeKind.PHYSICAL_PLAN, "t") == Versioned(value, version)

    def test_a_large_value_comes_back_whole(self, manager: StateManager) -> None:
        """The packing plan of a large topology has several megabytes."""
        value = bytes(range(256)) * (min(_LARGE_BYTES, manager.max_value_bytes or _LARGE_BYTES) // 256)
        manager.set(NodeKind.PACKING_PLAN, "t", value)
        present = manager.get(NodeKind.PACKING_PLAN, "t")
        assert present is not None
        assert present.value == value

    def test_a_value_above_the_limit_is_refused(self, manager: StateManager) -> None:
        """A driver with `max_value_bytes` refuses larger values, because its store would fail."""
        limit = manager.max_value_bytes
        if limit is None:
            return
        version = manager.set(NodeKind.PACKING_PLAN, "t", b"x" * limit)
        for attempt in (
            lambda: manager.set(NodeKind.PACKING_PLAN, "t", b"y" * (limit + 1)),
            lambda: manager.set(NodeKind.PHYSICAL_PLAN, "t", b"y" * (limit + 1), expected=MUST_NOT_EXIST),
            lambda: manager.hold(NodeKind.TMANAGER_LOCATION, "t", b"y" * (limit + 1)),
        ):
            with pytest.raises(StateError) as refusal:
                attempt()
            assert not isinstance(refusal.value, StateUnavailableError | StateConflictError)
        assert manager.get(NodeKind.PACKING_PLAN, "t") == Versioned(b"x" * limit, version)
        assert manager.get(NodeKind.PHYSICAL_PLAN, "t") is None
        assert manager.get(NodeKind.TMANAGER_LOCATION, "t") is None

    def test_secrets_are_in_files_that_only_the_owner_can_read(
        self, open_manager: Callable[[], StateManager], tmp_path: Path
    ) -> None:
        """A person who reads a KEYS node can control the topology, so each file with its value has the mode 0600.

        The umask is 022, as for most users. The files are searched below `tmp_path`.
        """
        umask = os.umask(0o022)
        try:
            manager = open_manager()
            requires(manager, "files")
            manager.set(NodeKind.KEYS, "t", b"first")
            before = _files(tmp_path)
            manager.set(NodeKind.KEYS, "t", _SECRET)
        finally:
            os.umask(umask)
        changed = [path for path, state in _files(tmp_path).items() if before.get(path) != state]
        plain = [path for path in changed if _SECRET in path.read_bytes()]
        assert changed, "set changed no file below tmp_path: keep the store of the test there"
        modes = {str(path): oct(path.stat().st_mode & 0o777) for path in plain or changed}
        assert set(modes.values()) == {"0o600"}, f"mode of a file with a KEYS node: {modes}"

    def test_kinds_and_topologies_are_apart(self, manager: StateManager) -> None:
        """Nodes of different kinds or of similar names must not affect each other."""
        for kind in NodeKind:
            manager.set(kind, "t", kind.value.encode())
            manager.set(kind, "t-2", b"other")
        for kind in NodeKind:
            present = manager.get(kind, "t")
            assert present is not None
            assert present.value == kind.value.encode()

    def test_list_is_sorted_and_leaves_out_removed_nodes(self, manager: StateManager) -> None:
        """Commands show the list without a change."""
        for topology in ("b", "a", "c"):
            manager.set(NodeKind.TOPOLOGY, topology, b"")
        manager.delete(NodeKind.TOPOLOGY, "b")
        assert manager.list(NodeKind.TOPOLOGY) == ("a", "c")
        assert manager.list(NodeKind.LOCK) == ()

    @pytest.mark.parametrize("topology", _HOSTILE_NAMES)
    def test_a_hostile_name_is_refused_everywhere(self, manager: StateManager, topology: str) -> None:
        """A name that leads out of the folder of the driver would overwrite something that is not a node."""
        for attempt in (
            lambda: manager.get(NodeKind.TOPOLOGY, topology),
            lambda: manager.set(NodeKind.TOPOLOGY, topology, b"x"),
            lambda: manager.delete(NodeKind.TOPOLOGY, topology),
            lambda: manager.watch(NodeKind.TOPOLOGY, topology, lambda _present: None),
            lambda: manager.hold(NodeKind.TOPOLOGY, topology, b"x"),
        ):
            with pytest.raises(StateError):
                attempt()
        assert manager.list(NodeKind.TOPOLOGY) == ()

    # -- compare and set

    def test_set_with_another_version_expected_changes_nothing(self, manager: StateManager) -> None:
        """Two commands that update one plan must not overwrite each other."""
        version = manager.set(NodeKind.PACKING_PLAN, "t", b"one")
        for expected in (MUST_NOT_EXIST, version + 1):
            with pytest.raises(StateConflictError):
                manager.set(NodeKind.PACKING_PLAN, "t", b"two", expected=expected)
            with pytest.raises(StateConflictError):
                manager.delete(NodeKind.PACKING_PLAN, "t", expected=expected)
        assert manager.get(NodeKind.PACKING_PLAN, "t") == Versioned(b"one", version)

    def test_set_with_the_present_version_expected_goes_through(self, manager: StateManager) -> None:
        """An update creates, changes, removes and creates a node again."""
        first = manager.set(NodeKind.PACKING_PLAN, "t", b"one", expected=MUST_NOT_EXIST)
        second = manager.set(NodeKind.PACKING_PLAN, "t", b"two", expected=first)
        manager.delete(NodeKind.PACKING_PLAN, "t", expected=second)
        assert manager.get(NodeKind.PACKING_PLAN, "t") is None
        manager.set(NodeKind.PACKING_PLAN, "t", b"three", expected=MUST_NOT_EXIST)

    def test_an_absent_node_has_no_version_to_expect(self, manager: StateManager) -> None:
        """After a kill, a late update of the topology must not create its plan again."""
        with pytest.raises(StateConflictError):
            manager.set(NodeKind.PACKING_PLAN, "t", b"x", expected=1)
        assert manager.get(NodeKind.PACKING_PLAN, "t") is None

    def test_concurrent_writers_lose_no_update(self, manager: StateManager, spawn: Spawn) -> None:
        """Compare-and-set is atomic across processes, so four processes reach the exact sum."""
        writers = [spawn("increment", NodeKind.CHECKPOINTS, "t", 50) for _ in range(4)]
        assert [writer.wait(60) for writer in writers] == [0] * 4
        present = manager.get(NodeKind.CHECKPOINTS, "t")
        assert present is not None
        assert present.value == b"200"
        assert present.version >= 200

    def test_one_of_many_threads_creates(self, manager: StateManager) -> None:
        """The threads of a process share the manager, and only one thread may create a lock node."""

        def create(number: int) -> bool:
            try:
                manager.set(NodeKind.LOCK, "t", b"%d" % number, expected=MUST_NOT_EXIST)
            except StateConflictError:
                return False
            return True

        with ThreadPoolExecutor(8) as threads:
            outcomes = list(threads.map(create, range(8)))
        assert sorted(outcomes) == [False] * 7 + [True]

    def test_a_writer_killed_in_the_middle_leaves_a_whole_value(self, manager: StateManager, spawn: Spawn) -> None:
        """After SIGKILL at any moment of a large write, the node has a complete value."""
        size = min(_LARGE_BYTES, manager.max_value_bytes or _LARGE_BYTES)
        for _ in range(4):
            before = manager.set(NodeKind.PHYSICAL_PLAN, "t", pattern(0, size))
            writer = spawn("write-on", NodeKind.PHYSICAL_PLAN, "t", size)
            wait_until(functools.partial(_is_past, manager, before), 20, "the other process writes")
            _kill(writer)
            present = manager.get(NodeKind.PHYSICAL_PLAN, "t")
            assert present is not None
            assert present.value == present.value[:1] * size
            assert manager.set(NodeKind.PHYSICAL_PLAN, "t", b"after") > present.version

    # -- holds

    def test_a_held_node_is_seen_and_is_held_once(self, open_manager: Callable[[], StateManager]) -> None:
        """Two topology managers of one topology would publish two plans."""
        first, second = open_manager(), open_manager()
        hold = first.hold(NodeKind.TMANAGER_LOCATION, "t", b"here")
        present = second.get(NodeKind.TMANAGER_LOCATION, "t")
        assert present == Versioned(b"here", hold.epoch)
        assert second.list(NodeKind.TMANAGER_LOCATION) == ("t",)
        for manager in (first, second):
            with pytest.raises(StateConflictError):
                manager.hold(NodeKind.TMANAGER_LOCATION, "t", b"there")
        assert not hold.lost()

    def test_a_released_node_is_gone_and_can_be_held_again(self, manager: StateManager) -> None:
        """A topology manager that stops in order lets another lead at once."""
        hold = manager.hold(NodeKind.TMANAGER_LOCATION, "t", b"one")
        hold.release()
        hold.release()
        assert manager.get(NodeKind.TMANAGER_LOCATION, "t") is None
        assert hold.lost()
        assert manager.hold(NodeKind.TMANAGER_LOCATION, "t", b"two").epoch > hold.epoch

    def test_a_killed_holders_node_is_gone_and_the_epoch_grows(self, manager: StateManager, spawn: Spawn) -> None:
        """SIGKILL frees the node, and receivers tell messages of the dead holder from those of its successor."""
        epoch = 0
        for _ in range(3):
            holder = spawn("hold", NodeKind.TMANAGER_LOCATION, "t")
            word, number = _line(holder).split()
            assert word == "epoch"
            assert int(number) > epoch
            epoch = int(number)
            assert manager.get(NodeKind.TMANAGER_LOCATION, "t") == Versioned(b"held", epoch)
            with pytest.raises(StateConflictError):
                manager.hold(NodeKind.TMANAGER_LOCATION, "t", b"mine")
            _kill(holder)
            wait_until(lambda: manager.get(NodeKind.TMANAGER_LOCATION, "t") is None, _GONE_S, "the node is gone")
            assert manager.list(NodeKind.TMANAGER_LOCATION) == ()
        assert manager.hold(NodeKind.TMANAGER_LOCATION, "t", b"mine").epoch > epoch

    def test_a_set_keeps_the_hold(self, open_manager: Callable[[], StateManager]) -> None:
        """A topology manager that changes its address must keep the lead."""
        first, second = open_manager(), open_manager()
        hold = first.hold(NodeKind.TMANAGER_LOCATION, "t", b"one")
        for manager, value in ((first, b"two"), (second, b"three")):
            before = manager.get(NodeKind.TMANAGER_LOCATION, "t")
            assert before is not None
            version = manager.set(NodeKind.TMANAGER_LOCATION, "t", value, expected=before.version)
            assert version > before.version
            assert second.get(NodeKind.TMANAGER_LOCATION, "t") == Versioned(value, version)
            assert not hold.lost()
            with pytest.raises(StateConflictError):
                second.hold(NodeKind.TMANAGER_LOCATION, "t", b"mine")
        hold.release()
        assert second.get(NodeKind.TMANAGER_LOCATION, "t") is None

    def test_a_node_that_was_set_still_ends_with_its_holder(self, manager: StateManager, spawn: Spawn) -> None:
        """A value that outlives its holder would look like a live process."""
        holder = spawn("hold", NodeKind.TMANAGER_LOCATION, "t")
        _line(holder)
        version = manager.set(NodeKind.TMANAGER_LOCATION, "t", b"new")
        assert manager.get(NodeKind.TMANAGER_LOCATION, "t") == Versioned(b"new", version)
        _kill(holder)
        wait_until(lambda: manager.get(NodeKind.TMANAGER_LOCATION, "t") is None, _GONE_S, "the node is gone")
        assert manager.hold(NodeKind.TMANAGER_LOCATION, "t", b"mine").epoch > version

    def test_a_hold_whose_node_was_removed_is_lost_for_good(self, open_manager: Callable[[], StateManager]) -> None:
        """The former holder must notice the loss, also when the node exists again."""
        manager = open_manager()
        hold = manager.hold(NodeKind.TMANAGER_LOCATION, "t", b"one")
        open_manager().delete(NodeKind.TMANAGER_LOCATION, "t")
        wait_until(hold.lost, _CHANGE_S, "the hold is lost")
        manager.set(NodeKind.TMANAGER_LOCATION, "t", b"two")
        assert hold.lost()
        hold.release()
        present = manager.get(NodeKind.TMANAGER_LOCATION, "t")
        assert present is not None
        assert present.value == b"two"

    def test_a_removed_node_can_be_held_by_another_at_once(self, open_manager: Callable[[], StateManager]) -> None:
        """This also holds while the former holder lives, for example if it hangs. Its release then removes nothing."""
        former = open_manager().hold(NodeKind.TMANAGER_LOCATION, "t", b"one")
        manager = open_manager()
        manager.delete(NodeKind.TMANAGER_LOCATION, "t")
        hold = manager.hold(NodeKind.TMANAGER_LOCATION, "t", b"two")
        assert hold.epoch > former.epoch
        wait_until(former.lost, _CHANGE_S, "the former hold is lost")
        former.release()
        assert manager.get(NodeKind.TMANAGER_LOCATION, "t") == Versioned(b"two", hold.epoch)
        assert not hold.lost()

    def test_close_releases_holds(self, open_manager: Callable[[], StateManager]) -> None:
        """A process that ends in order leaves no node that looks like a live process."""
        first, second = open_manager(), open_manager()
        first.hold(NodeKind.TMANAGER_LOCATION, "t", b"one")
        first.close()
        first.close()
        assert second.get(NodeKind.TMANAGER_LOCATION, "t") is None

    # -- watches

    def test_a_watch_reports_the_present_value_and_each_change(self, open_manager: Callable[[], StateManager]) -> None:
        """The caller's thread gets the present value at once; then the watch reports creation, change and removal."""
        manager, other = open_manager(), open_manager()
        seen: queue.Queue[tuple[Versioned | None, threading.Thread]] = queue.Queue()
        watch = manager.watch(NodeKind.TOPOLOGY, "t", lambda present: seen.put((present, threading.current_thread())))
        assert seen.get_nowait() == (None, threading.current_thread())
        for change in (b"one", b"two", None):
            if change is None:
                other.delete(NodeKind.TOPOLOGY, "t")
            else:
                other.set(NodeKind.TOPOLOGY, "t", change)
            present, thread = seen.get(timeout=_CHANGE_S)
            assert (None if present is None else present.value) == change
            assert thread is not threading.current_thread()
        watch.close()
        watch.close()

    def test_a_watch_never_misses_the_last_change(self, manager: StateManager, spawn: Spawn) -> None:
        """A watch may combine changes, but it must report the last one, such as the newest plan."""
        last = threading.Event()
        versions: list[int] = []

        def note(present: Versioned | None) -> None:
            if present is not None:
                versions.append(present.version)
                if present.value == b"300":
                    last.set()

        watch = manager.watch(NodeKind.PHYSICAL_PLAN, "t", note)
        assert spawn("count", NodeKind.PHYSICAL_PLAN, "t", 300).wait(60) == 0
        assert last.wait(_CHANGE_S)
        watch.close()
        assert versions == sorted(set(versions))

    def test_a_watch_reports_that_the_holder_died(self, manager: StateManager, spawn: Spawn) -> None:
        """A takeover waits for this report; no file event tells that a process was killed."""
        holder = spawn("hold", NodeKind.TMANAGER_LOCATION, "t")
        _line(holder)
        seen: queue.Queue[Versioned | None] = queue.Queue()
        watch = manager.watch(NodeKind.TMANAGER_LOCATION, "t", seen.put)
        first = seen.get_nowait()
        assert first is not None
        assert first.value == b"held"
        _kill(holder)
        assert seen.get(timeout=_GONE_S) is None
        watch.close()

    def test_a_watch_goes_on_after_its_callback_raised(
        self, manager: StateManager, caplog: pytest.LogCaptureFixture
    ) -> None:
        """One invalid value must not hide all later values from the process."""
        seen: queue.Queue[Versioned | None] = queue.Queue()

        def raise_once(present: Versioned | None) -> None:
            seen.put(present)
            if present is not None and present.value == b"bad":
                message = "cannot read it"
                raise ValueError(message)

        watch = manager.watch(NodeKind.TOPOLOGY, "t", raise_once)
        seen.get_nowait()
        for value in (b"bad", b"good"):
            manager.set(NodeKind.TOPOLOGY, "t", value)
            present = seen.get(timeout=_CHANGE_S)
            assert present is not None
            assert present.value == value
        watch.close()
        assert any(record.exc_info for record in caplog.records)

    def test_a_closed_watch_is_silent_also_when_closed_by_its_callback(self, manager: StateManager) -> None:
        """Most watches wait for one change, and close in the callback that receives it."""
        calls: queue.Queue[str] = queue.Queue()

        def close_inner(present: Versioned | None) -> None:
            if present is not None:
                inner.close()
                calls.put("inner")

        outer = manager.watch(NodeKind.TOPOLOGY, "t", lambda _present: calls.put("outer"))
        inner = manager.watch(NodeKind.TOPOLOGY, "t", close_inner)
        assert calls.get_nowait() == "outer"
        manager.set(NodeKind.TOPOLOGY, "t", b"one")
        assert {calls.get(timeout=_CHANGE_S), calls.get(timeout=_CHANGE_S)} == {"outer", "inner"}
        manager.set(NodeKind.TOPOLOGY, "t", b"two")
        assert calls.get(timeout=_CHANGE_S) == "outer"
        outer.close()
        manager.set(NodeKind.TOPOLOGY, "t", b"three")
        third: queue.Queue[Versioned | None] = queue.Queue()
        watch = manager.watch(NodeKind.TOPOLOGY, "t", third.put)
        manager.set(NodeKind.TOPOLOGY, "t", b"four")
        wait_until(lambda: third.qsize() == 2, _CHANGE_S, "a later watch saw the change that closed ones did not")
        watch.close()
        assert calls.empty()


def _files(folder: Path) -> dict[Path, tuple[int, int, int]]:
    """Return the identity of each file, to find files that were replaced or changed."""
    stats = {path: path.stat() for path in folder.rglob("*") if path.is_file()}
    return {path: (stat.st_ino, stat.st_size, stat.st_mtime_ns) for path, stat in stats.items()}


def _is_past(manager: StateManager, version: int) -> bool:
    present = manager.get(NodeKind.PHYSICAL_PLAN, "t")
    return present is not None and present.version > version


def _line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def _kill(process: subprocess.Popen[str]) -> None:
    process.kill()
    process.wait()
    if process.stdout is not None:
        process.stdout.close()
