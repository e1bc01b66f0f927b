"""What is removed on a worker that others have left there, and what is not."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from heron.driver_kit.child_processes import ProcessIdentity
from heron_scheduler_spark.predecessor import Predecessor
from heron_scheduler_spark.stale_run_dirs import sweep


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
    """One in which these have run, with the spec of a container, untouched for some time."""
    path.mkdir()
    for number, each in enumerate(executors):
        Predecessor(path, number).note(each)
    (path / "c0").mkdir()
    (path / "c0" / "stmgr.json").touch()
    path.chmod(mode)
    changed_s = path.stat().st_mtime - age_s
    os.utime(path, (changed_s, changed_s))
    return path


def test_what_was_killed_with_all_above_it_goes(tmp_path: Path, gone: ProcessIdentity) -> None:
    """Specs of processes, with keys in them, would stay for as long as the machine does."""
    mine = run_dir(tmp_path / "heron-00000000")
    stale = run_dir(tmp_path / "heron-1a2b3c4d", gone, gone)
    sweep(mine)
    assert not stale.exists()
    assert mine.exists()


def test_what_may_be_used_stays(tmp_path: Path, alive: ProcessIdentity, gone: ProcessIdentity) -> None:
    """One container lives; one is being started; a submission's own; others may enter; another name; another boot."""
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
    sweep(run_dir(tmp_path / "heron-00000000"))
    assert all((each / "c0").exists() for each in (*kept, outside))


def test_a_container_that_ended_leaves_no_word(tmp_path: Path, gone: ProcessIdentity) -> None:
    """Its run directory goes with the last one, also after an executor that wrote why it failed."""
    (tmp_path / "run").mkdir()
    first, second = Predecessor(tmp_path / "run", 1), Predecessor(tmp_path / "run", 2)
    first.note(gone)
    (tmp_path / "run" / "c1.error").write_text("no room")
    second.note(gone)
    first.forget()
    assert [path.name for path in (tmp_path / "run").iterdir()] == ["c2.executor"]
    second.forget()
    assert not (tmp_path / "run").exists()


def test_a_folder_that_cannot_be_read_is_no_error(tmp_path: Path) -> None:
    """Tidying up is no reason not to start a container."""
    sweep(tmp_path / "none" / "heron-00000000")
