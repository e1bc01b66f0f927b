"""The directory of a container."""

from __future__ import annotations

from pathlib import Path

import pytest

from heron.errors import StateError
from heron.executor.workspace import Workspace


def test_a_former_attempts_leavings_are_gone(tmp_path: Path) -> None:
    """A socket file of a killed process would refuse the next one its place."""
    first = Workspace(tmp_path / "run", 1)
    first.make()
    (first.path / "stmgr").touch()
    first.leave_error("it\nfailed")
    again = Workspace(tmp_path / "run", 1)
    again.make()
    assert list((tmp_path / "run").rglob("*")) == [again.path]
    assert again.path.stat().st_mode & 0o777 == 0o700


def test_the_reason_is_one_line_for_the_scheduler(tmp_path: Path) -> None:
    """The scheduler's status shows it as it is."""
    workspace = Workspace(tmp_path, 3)
    workspace.leave_error("no\n  space ")
    assert (tmp_path / "c3.error").read_text() == "no space\n"


def test_the_last_container_out_removes_the_run_directory(tmp_path: Path) -> None:
    """Nothing of a run is left in the temporary directory."""
    run_dir = tmp_path / "run"
    first, second = Workspace(run_dir, 0), Workspace(run_dir, 1)
    first.make()
    second.make()
    second.leave_error("x")
    first.remove()
    assert second.path.is_dir()
    second.remove()
    assert not run_dir.exists()


def test_a_failed_attempt_leaves_its_reason(tmp_path: Path) -> None:
    """`clear` is for the attempt that another one follows."""
    workspace = Workspace(tmp_path / "run", 1)
    workspace.make()
    workspace.leave_error("why")
    workspace.clear()
    assert [path.name for path in (tmp_path / "run").iterdir()] == ["c1.error"]


def test_a_run_directory_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    """Something else stands where it should be."""
    (tmp_path / "run").write_text("a file")
    with pytest.raises(StateError, match=r"container directory .*run/c1 cannot be made"):
        Workspace(tmp_path / "run", 1).make()
