"""The local checkpoint store: its contract, folders, file modes, and errors of the disk."""

from __future__ import annotations

import errno
import fcntl
import os
from pathlib import Path

import pytest

from heron.errors import CheckpointError, ConfigError
from heron_checkpoint_localfs import LocalfsCheckpointStore
from heron_testing.contracts.checkpoint import CheckpointStoreContract
from heron_testing.faults import Faults, file_faults

NAME = "words/words-1/0000000001/task-1"


class TestContract(CheckpointStoreContract):
    name = "localfs"
    driver_class = LocalfsCheckpointStore

    @pytest.fixture
    def options(self, tmp_path: Path) -> dict[str, object]:
        return {"root": str(tmp_path / "root")}

    @pytest.fixture
    def faults(self, tmp_path: Path) -> Faults:
        return file_faults(tmp_path / "root")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "deep" / "root"


@pytest.fixture
def store(root: Path) -> LocalfsCheckpointStore:
    return LocalfsCheckpointStore.open({"root": str(root)})


def files(root: Path) -> list[str]:
    return sorted(str(path.relative_to(root)) for path in root.rglob("*") if path.is_file())


def test_only_the_owner_can_read(store: LocalfsCheckpointStore, root: Path) -> None:
    """State contains the data of users."""
    store.store(NAME, b"state")
    path = root / NAME
    assert path.stat().st_mode & 0o777 == 0o600
    assert {each.stat().st_mode & 0o777 for each in path.parents if root.parent in (each, *each.parents)} == {0o700}


def test_the_root_is_below_the_home_by_default(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The profile `local` works without an option."""
    monkeypatch.setenv("HOME", str(tmp_path))
    LocalfsCheckpointStore.open({}).store(NAME, b"state")
    assert files(tmp_path) == [f".heron/checkpoints/{NAME}"]


def test_a_store_leaves_no_partial_file(store: LocalfsCheckpointStore, root: Path) -> None:
    """Partial files that stay would fill the disk."""
    store.store(NAME, b"state")
    assert files(root) == [NAME]


@pytest.mark.parametrize("then", ["store", "dispose"])
def test_partial_files_of_killed_processes_are_removed(store: LocalfsCheckpointStore, root: Path, then: str) -> None:
    """A process cannot catch ``kill -9``. A lock protects the partial file of a store that is still at work."""
    store.store(NAME, b"state")
    dead, alive = (root / NAME).with_name(".task-2.part-dead"), (root / NAME).with_name(".task-3.part-alive")
    dead.touch()
    with alive.open("wb") as writer:
        fcntl.flock(writer, fcntl.LOCK_EX)
        if then == "store":
            store.store(f"{NAME}1", b"state")
        else:
            store.dispose([NAME])
        assert not dead.exists()
        assert alive.exists()
    assert [each.name for each in store.list("words") if "part" in each.name] == []


def test_dispose_removes_the_remains_of_checkpoints_that_never_completed(
    store: LocalfsCheckpointStore, root: Path
) -> None:
    """Nobody lists them, so nobody names them; they would stay for ever."""
    store.store(NAME, b"state")
    dead = root / "words" / "words-1" / "0000000007" / ".task-2.part-dead"
    dead.parent.mkdir()
    dead.touch()
    store.dispose(["words/words-1/0000000001/task-9"])
    assert not dead.parent.exists()
    assert files(root) == [NAME]


def test_dispose_removes_empty_folders_up_to_the_root(store: LocalfsCheckpointStore, root: Path) -> None:
    """Folders of topologies that are gone would fill the list of the root."""
    store.store(NAME, b"state")
    store.store("other/task-1", b"state")
    store.dispose([NAME])
    assert sorted(each.name for each in root.iterdir()) == ["other"]
    store.dispose(["other/task-1"])
    assert list(root.iterdir()) == []


def test_a_store_survives_a_dispose_that_removes_its_folder(
    store: LocalfsCheckpointStore, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The leader removes old checkpoints while tasks save the next one in folders that are still empty."""
    scan = os.scandir

    def scan_after_dispose(folder: Path) -> object:
        monkeypatch.setattr(os, "scandir", scan)
        LocalfsCheckpointStore(root).dispose(["words/words-1/0000000001/task-2"])
        assert not (root / "words").exists()
        return scan(folder)

    monkeypatch.setattr(os, "scandir", scan_after_dispose)
    store.store(NAME, b"state")
    assert store.load(NAME) == b"state"


def test_an_object_is_on_disk_before_it_has_its_name(
    store: LocalfsCheckpointStore, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a crash of the machine a name must not lead to an empty file, nor a stored object be missing."""
    steps: list[str] = []
    force, rename = os.fsync, Path.replace

    def record_fsync(descriptor: int) -> None:
        steps.append(Path(os.readlink(f"/proc/self/fd/{descriptor}")).name)
        force(descriptor)

    def record_rename(partial: Path, target: Path) -> Path:
        steps.append("renamed")
        return rename(partial, target)

    monkeypatch.setattr(os, "fsync", record_fsync)
    monkeypatch.setattr(Path, "replace", record_rename)
    store.store(NAME, b"state")
    assert steps[0] == "deep", "which has the new root"
    assert steps[1].startswith(".task-1.part-")
    assert steps[2:] == ["renamed", "0000000001", "words-1", "words", "root"]


@pytest.mark.parametrize(
    ("code", "remedy"),
    [
        (errno.ENOSPC, "free some space"),
        (errno.EDQUOT, "free some space"),
        (errno.EACCES, "grant the permission"),
        (errno.EROFS, "grant the permission, or choose another checkpoint.root"),
        (errno.EIO, "choose another checkpoint.root"),
    ],
)
@pytest.mark.parametrize("call", ["write", "fsync"])
def test_an_error_of_the_disk_names_a_remedy_and_leaves_no_file(
    store: LocalfsCheckpointStore, root: Path, monkeypatch: pytest.MonkeyPatch, call: str, code: int, remedy: str
) -> None:
    """A full disk and a missing permission have different remedies. The former object stays as it is."""
    store.store(NAME, b"former")

    def fail(*_: object) -> None:
        raise OSError(code, os.strerror(code))

    with monkeypatch.context() as patch:
        patch.setattr(os, call, fail)
        with pytest.raises(CheckpointError, match=remedy) as caught:
            store.store(NAME, b"state")
    assert f"{root / NAME}: its 5 bytes cannot be stored" in str(caught.value)
    assert files(root) == [NAME]
    assert store.load(NAME) == b"former"


def test_a_root_that_is_a_file_is_named(root: Path, store: LocalfsCheckpointStore) -> None:
    """A wrong root is a mistake in a profile, so the error names the option."""
    root.parent.mkdir()
    root.touch()
    with pytest.raises(CheckpointError, match=r"deep/root.*choose another checkpoint\.root"):
        store.store(NAME, b"state")


def test_a_folder_in_the_place_of_an_object_is_an_error(store: LocalfsCheckpointStore, root: Path) -> None:
    """No store makes it; somebody with access to the root can."""
    (root / NAME).mkdir(parents=True)
    root.chmod(0o700)
    for call in (lambda: store.store(NAME, b"x"), lambda: store.load(NAME), lambda: store.dispose([NAME])):
        with pytest.raises(CheckpointError, match="directory"):
            call()


def test_a_link_out_of_the_root_is_not_listed(store: LocalfsCheckpointStore, root: Path, tmp_path: Path) -> None:
    """A list that follows links could be endless."""
    store.store(NAME, b"state")
    (root / "words" / "loop").symlink_to(root)
    (root / "words" / "file").symlink_to(tmp_path)
    assert [each.name for each in store.list("words")] == [NAME]


def test_a_file_that_becomes_shorter_is_an_error(
    store: LocalfsCheckpointStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A loop that waits for bytes that never come would hang the task."""
    store.store(NAME, b"state")
    monkeypatch.setattr(os, "pread", lambda *_: b"")
    with pytest.raises(CheckpointError, match="became shorter"):
        store.load(NAME)


def test_wrong_type_of_root_is_refused() -> None:
    """The mistake shows when the driver is opened, not at the first checkpoint."""
    with pytest.raises(ConfigError, match=r"checkpoint\.root: expected `str`, got `int`; it is 3"):
        LocalfsCheckpointStore.open({"root": 3})
