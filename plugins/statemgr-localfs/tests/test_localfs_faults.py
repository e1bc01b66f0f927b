"""Faults of files (garbled, left by a killed writer, missing, not writable) and of watches (no inotify)."""

from __future__ import annotations

import errno
import logging
import os
import queue
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from watchdog.observers.api import BaseObserver

from heron.errors import StateConflictError, StateError, StateUnavailableError
from heron.spi.statemgr import MUST_NOT_EXIST, NodeKind, Versioned
from heron_statemgr_localfs.os_errors import translate_os_errors
from heron_statemgr_localfs.state_manager import LocalFsStateManager

_KIND = NodeKind.PHYSICAL_PLAN


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "a" / "state"


@pytest.fixture
def manager(root: Path) -> Iterator[LocalFsStateManager]:
    opened = LocalFsStateManager.open({"root": str(root)})
    yield opened
    opened.close()


def test_a_garbled_file_is_named_and_a_write_repairs_it(manager: LocalFsStateManager, root: Path) -> None:
    """A garbled value is never returned. The version continues to grow, so that readers accept the new value."""
    manager.set(_KIND, "t", b"one")
    manager.set(_KIND, "t", b"two")
    file = root / "pplans" / "t"
    file.write_bytes(b"garbage")
    with pytest.raises(StateError, match=f"{file}: .* `heron kill`"):
        manager.get(_KIND, "t")
    assert manager.list(_KIND) == ("t",)
    with pytest.raises(StateConflictError):
        manager.set(_KIND, "t", b"three", expected=MUST_NOT_EXIST)
    assert manager.set(_KIND, "t", b"three") == 3
    file.write_bytes(b"")
    manager.delete(_KIND, "t")
    assert manager.get(_KIND, "t") is None


def test_the_temporary_file_of_a_killed_writer_is_never_read_and_the_next_write_removes_it(
    manager: LocalFsStateManager, root: Path
) -> None:
    """A node has one name for its temporary file, so that killed writers leave at most one."""
    manager.set(_KIND, "t", b"one")
    left = root / "pplans" / ".t.tmp"
    left.write_bytes(b"half a")
    assert manager.get(_KIND, "t") == Versioned(b"one", 1)
    assert manager.list(_KIND) == ("t",)
    manager.set(_KIND, "t", b"two")
    assert not left.exists()


def test_versions_grow_across_removal(manager: LocalFsStateManager) -> None:
    """A command must not take a plan that was removed and written again for the plan that it read."""
    first = manager.set(_KIND, "t", b"one")
    manager.delete(_KIND, "t")
    assert manager.set(_KIND, "t", b"two") > first
    with pytest.raises(StateConflictError, match="pplans/t is at version 2"):
        manager.set(_KIND, "t", b"three", expected=first)


def test_a_held_node_stays_held_when_its_value_changes(manager: LocalFsStateManager, root: Path) -> None:
    """A topology manager may write its location again and still lead."""
    hold = manager.hold(NodeKind.TMANAGER_LOCATION, "t", b"one")
    manager.set(NodeKind.TMANAGER_LOCATION, "t", b"two")
    assert not hold.lost()
    other = LocalFsStateManager.open({"root": str(root)})
    with pytest.raises(StateConflictError, match="tmanagers/t is held"):
        other.hold(NodeKind.TMANAGER_LOCATION, "t", b"three")
    hold.release()
    assert other.get(NodeKind.TMANAGER_LOCATION, "t") is None
    other.close()


def test_only_the_user_can_read_folders_and_files(manager: LocalFsStateManager, root: Path) -> None:
    """The nodes contain keys and addresses of running topologies."""
    manager.set(_KIND, "t", b"one")
    manager.hold(NodeKind.LOCK, "t", b"")
    for path in (root.parent, root, *root.rglob("*")):
        assert path.stat().st_mode & 0o777 == (0o700 if path.is_dir() else 0o600), path


def test_a_missing_root_is_reported_and_not_created_again(manager: LocalFsStateManager, root: Path) -> None:
    """An unmounted disk must not look like an empty store, in which epochs would start again at 1."""
    hold = manager.hold(NodeKind.TMANAGER_LOCATION, "t", b"x")
    root.rename(root.with_name("elsewhere"))
    for attempt in (
        lambda: manager.get(_KIND, "t"),
        lambda: manager.set(_KIND, "t", b"x"),
        lambda: manager.list(_KIND),
    ):
        with pytest.raises(StateUnavailableError, match="is gone; bring it back"):
            attempt()
    assert not root.exists()
    assert not hold.lost()  # unknown while the store is away
    with pytest.raises(StateUnavailableError, match=r"is gone; bring it back .*; if it was removed for good, remove "):
        LocalFsStateManager.open({"root": str(root)})
    assert not root.exists()
    root.with_name("elsewhere").rename(root)
    assert not hold.lost()
    LocalFsStateManager.open({"root": str(root)}).close()


def test_a_root_that_was_removed_for_good_can_be_made_again(manager: LocalFsStateManager, root: Path) -> None:
    """The remedy in the message works: without the mark the root is created again."""
    manager.close()
    shutil.rmtree(root)
    root.with_name(".state.made").unlink()
    with closing(LocalFsStateManager.open({"root": str(root)})) as reopened:
        assert reopened.list(_KIND) == ()


@pytest.mark.parametrize("damage", [b"", b"heron-node 1 ver", b"by hand"])
def test_a_damaged_held_node_is_rewritten_with_the_same_value_and_epoch(
    manager: LocalFsStateManager, root: Path, damage: bytes
) -> None:
    """Other processes must find its holder. The hold is the same, so its epoch is the same."""
    hold = manager.hold(NodeKind.TMANAGER_LOCATION, "t", b"tcp://here:1")
    (root / "tmanagers" / "t").write_bytes(damage)
    with pytest.raises(StateError, match="tmanagers/t: "):
        manager.get(NodeKind.TMANAGER_LOCATION, "t")
    assert not hold.lost()
    assert manager.get(NodeKind.TMANAGER_LOCATION, "t") == Versioned(b"tcp://here:1", hold.epoch)
    with closing(LocalFsStateManager.open({"root": str(root)})) as other, pytest.raises(StateConflictError):
        other.hold(NodeKind.TMANAGER_LOCATION, "t", b"tcp://there:1")


def test_a_file_in_the_path_of_the_root_is_refused_with_a_remedy(tmp_path: Path) -> None:
    """This is the most common mistake with `root`."""
    (tmp_path / "file").write_text("")
    with pytest.raises(StateError, match="choose another 'root'"):
        LocalFsStateManager.open({"root": str(tmp_path / "file" / "state")})
    with pytest.raises(StateError, match="choose another 'root'"):
        LocalFsStateManager.open({"root": str(tmp_path / "file")})


@pytest.mark.parametrize(
    ("number", "kind", "remedy"),
    [
        (errno.ENOSPC, StateError, "make room"),
        (errno.EDQUOT, StateError, "quota"),
        (errno.EACCES, StateError, "the right to write"),
        (errno.EROFS, StateError, "read-only"),
        (errno.EIO, StateUnavailableError, "check the file system"),
        (errno.ESTALE, StateUnavailableError, "check the file system"),
    ],
)
def test_a_system_error_names_the_path_and_the_remedy(number: int, kind: type[StateError], remedy: str) -> None:
    """A refusal is a StateError: nothing has changed. After other errors the outcome is unknown."""
    with (
        pytest.raises(StateError, match=f"cannot write /state/t: .*{remedy}") as caught,
        translate_os_errors("write", Path("/state/t")),
    ):
        raise OSError(number, os.strerror(number))
    assert type(caught.value) is kind


def test_no_space_changes_nothing_and_leaves_no_temporary_file(
    manager: LocalFsStateManager, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The previous value stays readable when the disk is full."""
    manager.set(_KIND, "t", b"one")

    def full(_descriptor: int, _data: bytes) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patched:
        patched.setattr(os, "write", full)
        with pytest.raises(StateError, match="no space left"):
            manager.set(_KIND, "t", b"two")
    assert manager.get(_KIND, "t") == Versioned(b"one", 1)
    assert not (root / "pplans" / ".t.tmp").exists()


def test_watches_work_without_inotify(
    manager: LocalFsStateManager, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The inotify watches may be used up, and network file systems have none. The watcher then only polls."""

    def exhausted(*_arguments: object, **_named: object) -> None:
        raise OSError(errno.ENOSPC, "inotify watch limit reached")

    monkeypatch.setattr(BaseObserver, "schedule", exhausted)
    seen: queue.Queue[Versioned | None] = queue.Queue()
    with caplog.at_level(logging.WARNING):
        manager.watch(_KIND, "t", seen.put)
        assert seen.get_nowait() is None
        manager.set(_KIND, "t", b"one")
        assert seen.get(timeout=5) == Versioned(b"one", 1)
    assert "inotify watch limit reached" in caplog.text


def test_a_watch_survives_a_store_that_is_away(manager: LocalFsStateManager, root: Path) -> None:
    """No change is reported while the root is unmounted. The next change of the node is reported."""
    seen: queue.Queue[Versioned | None] = queue.Queue()
    manager.set(_KIND, "t", b"one")
    manager.watch(_KIND, "t", seen.put)
    assert seen.get_nowait() == Versioned(b"one", 1)
    away = root.with_name("away")
    root.rename(away)
    away.rename(root)
    manager.set(_KIND, "t", b"two")
    assert seen.get(timeout=5) == Versioned(b"two", 2)
    assert seen.empty()


def test_a_closed_manager_raises(manager: LocalFsStateManager) -> None:
    """Use after close is a mistake of the caller. It must not look like an empty store."""
    manager.close()
    with pytest.raises(StateError, match="is closed"):
        manager.get(_KIND, "t")


def test_only_the_first_watch_loads_watchdog() -> None:
    """Most processes have no watch, so they start without this import."""
    code = "import sys, heron_statemgr_localfs.state_manager; print(*sys.modules)"
    loaded = subprocess.check_output([sys.executable, "-P", "-c", code], text=True).split()
    assert "heron_statemgr_localfs.watcher" in loaded
    assert not [name for name in loaded if name.startswith("watchdog")]
