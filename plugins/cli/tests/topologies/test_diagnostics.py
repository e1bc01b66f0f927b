"""The checks of `heron doctor`: each fault has a remedy, and no check leaves a change."""

from __future__ import annotations

import os
import resource
import socket
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from heron.spi.scheduler import SchedulerState
from heron.spi.statemgr import NodeKind
from heron.state_nodes.execution_state import ExecutionState, encode_execution_state
from heron_cli.topologies.diagnostics import Diagnosis, diagnose_machine, diagnose_profile
from heron_cli.topologies.environment import Environment

if TYPE_CHECKING:
    from conftest import IdleScheduler


@pytest.fixture
def short_environment(environment: Environment, tmp_path: Path) -> Iterator[Environment]:
    """Return an environment with run directories of the test, at a path that is short enough for sockets."""
    (tmp_path / "run").mkdir(mode=0o700)
    short = Path("/tmp", f"hd{os.getpid()}")  # noqa: S108 - a short path is the point
    short.symlink_to(tmp_path / "run")
    yield replace(environment, profile=replace(environment.profile, run_dir=str(short)))
    short.unlink()


def look(short_environment: Environment, check: str) -> list[Diagnosis]:
    """Return the diagnoses of one check."""
    return [each for each in diagnose_profile(short_environment) if each.check == check]


def lost(environment: Environment) -> None:
    """Write the state of a run whose processes are gone."""
    run = ExecutionState("Words", "Words-1", 1.0, "me", socket.gethostname(), "here", "", "", "", attached=False)
    environment.statemgr.set(NodeKind.EXECUTION_STATE, "Words", encode_execution_state(run))


def test_a_machine_without_faults_has_only_ok(short_environment: Environment) -> None:
    """A warning or an error is always a real fault."""
    findings = [*diagnose_machine(), *diagnose_profile(short_environment)]
    ours = [each for each in findings if each.check not in {"disk", "open files"}]  # these depend on the machine
    assert {each.level for each in ours} == {"ok"}, findings
    assert {"python", "open files", "plugins", "run directory", "disk", "clock", "state manager"} <= {
        each.check for each in findings
    }


def test_few_open_files_are_a_warning_with_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    """Some systems default to 256. The test sets no limit, because this process may have more files open."""
    monkeypatch.setattr(resource, "getrlimit", lambda _: (256, 4096))
    (found,) = (each for each in diagnose_machine() if each.check == "open files")
    assert (found.level, found.remedy) == ("warning", "ulimit -n 1024")


def test_an_uploader_that_does_not_answer_is_an_error(short_environment: Environment) -> None:
    """Without it, no topology can be submitted and no container restarted."""
    uploader = replace(short_environment.profile.uploader, options={"root": "/proc/1/no-store"})
    ill = replace(short_environment, profile=replace(short_environment.profile, uploader=uploader))
    (finding,) = look(ill, "uploader")
    assert finding.level == "error"
    assert "/proc/1/no-store" in finding.text


@pytest.mark.parametrize(("run_dir", "message"), [("/x" * 60, "the limit is 107 bytes"), ("/nowhere", "No such file")])
def test_an_unusable_run_directory_is_an_error(short_environment: Environment, run_dir: str, message: str) -> None:
    """It holds sockets; otherwise a later bind in another process would fail."""
    ill = replace(short_environment, profile=replace(short_environment.profile, run_dir=run_dir))
    (finding,) = look(ill, "run directory")
    assert finding.level == "error"
    assert message in finding.text
    assert "run.run_dir" in finding.remedy


def test_a_folder_where_all_users_may_remove_files_is_a_warning(short_environment: Environment, tmp_path: Path) -> None:
    """Another user could replace the folder of a run."""
    (tmp_path / "run").chmod(0o777)
    (finding,) = look(short_environment, "run directory")
    assert finding.level == "warning"
    assert finding.remedy.startswith("chmod +t ")


def test_a_state_manager_that_does_not_answer_is_an_error(short_environment: Environment, tmp_path: Path) -> None:
    """The checks that need the state manager are skipped."""
    (tmp_path / "state").rmdir()
    (finding,) = look(short_environment, "state manager")
    assert finding.level == "error"
    assert look(short_environment, "topologies") == []


def test_a_dead_topology_is_named_with_the_command_that_removes_it(short_environment: Environment) -> None:
    """`heron doctor` changes nothing."""
    lost(short_environment)
    assert look(short_environment, "topologies") == [
        Diagnosis("topologies", "warning", "Words: dead, it did not clean up", "heron kill Words --profile here")
    ]
    assert short_environment.statemgr.get(NodeKind.EXECUTION_STATE, "Words")


def test_a_running_topology_is_not_reported(short_environment: Environment, scheduler: IdleScheduler) -> None:
    """Only faults that need an action are reported."""
    lost(short_environment)
    scheduler.state = SchedulerState.RUNNING
    assert look(short_environment, "topologies") == []


def test_a_damaged_node_is_an_error_that_names_it(short_environment: Environment) -> None:
    """Commands refuse to change such a topology."""
    short_environment.statemgr.set(NodeKind.EXECUTION_STATE, "Words", b"[]")
    (finding,) = look(short_environment, "topologies")
    assert finding.level == "error"
    assert "executionstate/Words" in finding.text


def test_an_unused_run_directory_is_named(short_environment: Environment, tmp_path: Path) -> None:
    """The folder belongs to this user, is old enough, and has no open socket."""
    for name, age_s in (("heron-00000001", 100.0), ("heron-00000002", 0.0), ("other", 100.0)):
        folder = tmp_path / "run" / name
        folder.mkdir(mode=0o700)
        then = folder.stat().st_mtime - age_s
        os.utime(folder, (then, then))
    (finding,) = look(short_environment, "run directories")
    assert finding.text.endswith("heron-00000001: no process uses it")
    assert finding.remedy.startswith("rm -r ")
