"""The directory of a container."""

from __future__ import annotations

from pathlib import Path

import pytest

from heron.errors import StateError
from heron.executor.workspace import Workspace


def test_the_files_of_a_former_attempt_are_removed(tmp_path: Path) -> None:
    """A socket file of a killed process would block the next bind."""
    first = Workspace(tmp_path / "run", 1)
    first.make()
    (first.path / "stmgr").touch()
    first.leave_error("it\nfailed")
    again = Workspace(tmp_path / "run", 1)
    again.make()
    assert list((tmp_path / "run").rglob("*")) == [again.path]
    assert again.path.stat().st_mode & 0o777 == 0o700


def test_the_reason_is_one_line_for_the_scheduler(tmp_path: Path) -> None:
    """The status of the scheduler shows it unchanged."""
    workspace = Workspace(tmp_path, 3)
    workspace.leave_error("no\n  space ")
    assert (tmp_path / "c3.error").read_text() == "no space\n"


def test_the_last_container_removes_the_run_directory(tmp_path: Path) -> None:
    """A run leaves no file in the temporary directory."""
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
    """`clear` ends an attempt that is followed by another one."""
    workspace = Workspace(tmp_path / "run", 1)
    workspace.make()
    workspace.leave_error("why")
    workspace.clear()
    assert [path.name for path in (tmp_path / "run").iterdir()] == ["c1.error"]


def test_a_run_directory_that_cannot_be_created_is_named(tmp_path: Path) -> None:
    """A file has the path of the directory."""
    (tmp_path / "run").write_text("a file")
    with pytest.raises(StateError, match=r"cannot create container directory .*run/c1: "):
        Workspace(tmp_path / "run", 1).make()
