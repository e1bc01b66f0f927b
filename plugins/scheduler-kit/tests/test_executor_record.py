"""Records of executors on a worker, and the removal of stale run directories."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from heron.driver_kit.child_processes import ProcessIdentity
from heron_scheduler_kit.executor_record import ExecutorRecord, remove_stale_run_dirs


@pytest.fixture
def alive() -> Iterator[ProcessIdentity]:
    process = subprocess.Popen(["sleep", "60"])
    yield ProcessIdentity.of(process.pid)
    process.kill()
    process.wait()


@pytest.fixture
def gone() -> ProcessIdentity:
    process = subprocess.Popen(["sleep", "60"])
    identity = ProcessIdentity.of(process.pid)
    process.kill()
    process.wait()
    return identity


def run_dir(path: Path, *executors: ProcessIdentity, mode: int = 0o700, age_s: int = 3600) -> Path:
    """Make a run directory with these recorded executors and a spec, unchanged for `age_s`."""
    path.mkdir()
    for number, each in enumerate(executors):
        ExecutorRecord(path, number).write(each)
    (path / "c0").mkdir()
    (path / "c0" / "stmgr.json").touch()
    path.chmod(mode)
    changed_s = path.stat().st_mtime - age_s
    os.utime(path, (changed_s, changed_s))
    return path


def test_a_run_directory_whose_executors_have_ended_is_removed(tmp_path: Path, gone: ProcessIdentity) -> None:
    """Otherwise specs with keys would stay there for ever."""
    mine = run_dir(tmp_path / "heron-00000000")
    stale = run_dir(tmp_path / "heron-1a2b3c4d", gone, gone)
    remove_stale_run_dirs(mine)
    assert not stale.exists()
    assert mine.exists()


def test_a_run_directory_that_may_be_in_use_stays(
    tmp_path: Path, alive: ProcessIdentity, gone: ProcessIdentity
) -> None:
    """A live executor, a recent start, no record, an open mode, another name or boot, and a link."""
    outside = run_dir(tmp_path / "outside", gone)
    kept = [
        run_dir(tmp_path / "heron-00000001", gone, alive),
        run_dir(tmp_path / "heron-00000002", gone, age_s=1),
        run_dir(tmp_path / "heron-00000003"),
        run_dir(tmp_path / "heron-00000004", gone, mode=0o755),
        run_dir(tmp_path / "heron-probe-xyz", gone),
        run_dir(tmp_path / "heron-00000006", ProcessIdentity(gone.pid, "1@another-boot/1")),
    ]
    (tmp_path / "heron-00000005").symlink_to(outside)
    remove_stale_run_dirs(run_dir(tmp_path / "heron-00000000"))
    assert all((each / "c0").exists() for each in (*kept, outside))


def test_the_last_container_that_ends_removes_the_run_directory(tmp_path: Path, gone: ProcessIdentity) -> None:
    """Also after an executor that wrote why it failed."""
    (tmp_path / "run").mkdir()
    first, second = ExecutorRecord(tmp_path / "run", 1), ExecutorRecord(tmp_path / "run", 2)
    first.write(gone)
    (tmp_path / "run" / "c1.error").write_text("no room")
    second.write(gone)
    first.remove()
    assert [path.name for path in (tmp_path / "run").iterdir()] == ["c2.executor"]
    second.remove()
    assert not (tmp_path / "run").exists()


def test_a_folder_that_cannot_be_read_is_ignored(tmp_path: Path) -> None:
    """A failed cleanup must not prevent the start of a container."""
    remove_stale_run_dirs(tmp_path / "none" / "heron-00000000")


def test_a_record_tells_whether_a_later_executor_runs_there(
    tmp_path: Path, alive: ProcessIdentity, gone: ProcessIdentity
) -> None:
    """An attempt that was replaced on its machine must not remove the record of its successor."""
    record = ExecutorRecord(tmp_path, 1)
    assert record.is_of(gone)
    record.write(gone)
    assert record.is_of(gone)
    record.write(alive)
    assert not record.is_of(gone)
