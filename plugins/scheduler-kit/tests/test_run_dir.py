"""Access to a run directory, on the machine of the command and on every worker."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from heron.errors import SchedulerError
from heron_scheduler_kit.executor_process import ExecutorProcess
from heron_scheduler_kit.run_dir import own_run_dir


def test_a_run_directory_is_made_once_and_private(tmp_path: Path) -> None:
    """The caller that made it removes it if a later step fails."""
    path = tmp_path / "run"
    assert [own_run_dir(path), own_run_dir(path)] == [True, False]
    assert path.stat().st_mode & 0o777 == 0o700


def test_a_run_directory_that_others_may_enter_is_refused(tmp_path: Path) -> None:
    """Everybody can write to the parent folder, so another user may have made it to put files or sockets there."""
    (tmp_path / "run").mkdir()
    (tmp_path / "run").chmod(0o777)
    with pytest.raises(SchedulerError, match="others may enter it, its mode is 0777"):
        own_run_dir(tmp_path / "run")


def test_a_link_is_refused(tmp_path: Path) -> None:
    """Also a link to a folder of this user: a later removal would not remove the folder that was made."""
    own_run_dir(tmp_path / "mine")
    (tmp_path / "run").symlink_to(tmp_path / "mine")
    with pytest.raises(SchedulerError, match="is a link"):
        own_run_dir(tmp_path / "run")


def test_a_run_directory_of_another_user_is_refused(tmp_path: Path) -> None:
    """The message has the number of that user. Only root can give a folder away; other users test with /usr."""
    theirs, owner = Path("/usr"), 0
    if os.getuid() == 0:
        theirs, owner = tmp_path / "run", 12345
        own_run_dir(theirs)
        os.chown(theirs, owner, -1)
    with pytest.raises(SchedulerError, match=f"belongs to user {owner}"):
        own_run_dir(theirs)


def test_no_executor_starts_in_a_refused_run_directory(tmp_path: Path) -> None:
    """This holds for a supervisor and for a task on a worker."""
    (tmp_path / "run").mkdir()
    (tmp_path / "run").chmod(0o777)
    spec = {"container_id": 1, "run_dir": str(tmp_path / "run"), "log_dir": str(tmp_path / "log")}
    with pytest.raises(SchedulerError, match="0777"):
        ExecutorProcess(["false"], tmp_path / "c1.json", spec)
    assert not (tmp_path / "log").exists()
