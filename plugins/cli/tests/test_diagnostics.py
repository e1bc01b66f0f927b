"""The doctor's checks: what is in order is said briefly, what is not with a remedy, and nothing is changed."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
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
def patient(environment: Environment, tmp_path: Path) -> Iterator[Environment]:
    """An environment whose run directories are the test's own, behind a path that is short enough for sockets."""
    (tmp_path / "run").mkdir(mode=0o700)
    short = Path("/tmp", f"hd{os.getpid()}")  # noqa: S108 - a short path is the point
    short.symlink_to(tmp_path / "run")
    yield replace(environment, profile=replace(environment.profile, run_dir=str(short)))
    short.unlink()


def look(patient: Environment, check: str) -> list[Diagnosis]:
    """The findings of one check."""
    return [each for each in diagnose_profile(patient) if each.check == check]


def lost(environment: Environment) -> None:
    """Writes the state of a run that is dead."""
    run = ExecutionState("Words", "Words-1", 1.0, "me", socket.gethostname(), "here", "", "", "", attached=False)
    environment.statemgr.set(NodeKind.EXECUTION_STATE, "Words", encode_execution_state(run))


def test_a_machine_in_order_has_nothing_but_ok(patient: Environment) -> None:
    """Whatever is found on it can be relied on to be a finding."""
    findings = [*diagnose_machine(), *diagnose_profile(patient)]
    ours = [each for each in findings if each.check not in {"disk", "open files"}]  # the machine's own affair
    assert {each.level for each in ours} == {"ok"}, findings
    assert {"python", "open files", "plugins", "run directory", "disk", "clock", "state manager"} <= {
        each.check for each in findings
    }


def test_few_open_files_are_a_warning_with_the_command() -> None:
    """The default of some systems is 256; in a process of its own, as this one may have more open by now."""
    code = (
        "import resource; from heron_cli.topologies.diagnostics import diagnose_machine;"
        "resource.setrlimit(resource.RLIMIT_NOFILE, (256, resource.getrlimit(resource.RLIMIT_NOFILE)[1]));"
        "print([(each.level, each.remedy) for each in diagnose_machine() if each.check == 'open files'])"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert found.stdout.strip() == "[('warning', 'ulimit -n 1024')]"


def test_a_store_of_packages_that_does_not_answer_is_an_error(patient: Environment) -> None:
    """No topology could be submitted, and no lost container started again."""
    uploader = replace(patient.profile.uploader, options={"root": "/proc/1/no-store"})
    ill = replace(patient, profile=replace(patient.profile, uploader=uploader))
    (finding,) = look(ill, "uploader")
    assert finding.level == "error"
    assert "/proc/1/no-store" in finding.text


@pytest.mark.parametrize(("run_dir", "said"), [("/x" * 60, "the limit is 107 bytes"), ("/nowhere", "No such file")])
def test_a_run_directory_that_cannot_serve_is_an_error(patient: Environment, run_dir: str, said: str) -> None:
    """Sockets lie in it; a bind that fails does so in another process, much later."""
    ill = replace(patient, profile=replace(patient.profile, run_dir=run_dir))
    (finding,) = look(ill, "run directory")
    assert finding.level == "error"
    assert said in finding.text
    assert "run.run_dir" in finding.remedy


def test_a_folder_in_which_anybody_may_remove_files_is_a_warning(patient: Environment, tmp_path: Path) -> None:
    """Others could put their own folder in the place of a run's."""
    (tmp_path / "run").chmod(0o777)
    (finding,) = look(patient, "run directory")
    assert finding.level == "warning"
    assert finding.remedy.startswith("chmod +t ")


def test_a_state_manager_that_does_not_answer_is_an_error(patient: Environment, tmp_path: Path) -> None:
    """What stands behind it cannot be looked at then, and is not."""
    (tmp_path / "state").rmdir()
    (finding,) = look(patient, "state manager")
    assert finding.level == "error"
    assert look(patient, "topologies") == []


def test_a_dead_topology_is_named_with_the_command_that_removes_it(patient: Environment) -> None:
    """The doctor itself changes nothing."""
    lost(patient)
    assert look(patient, "topologies") == [
        Diagnosis("topologies", "warning", "Words: dead, it did not clean up", "heron kill Words --profile here")
    ]
    assert patient.statemgr.get(NodeKind.EXECUTION_STATE, "Words")


def test_a_running_topology_is_no_finding(patient: Environment, scheduler: IdleScheduler) -> None:
    """Only what somebody has to do something about is said."""
    lost(patient)
    scheduler.state = SchedulerState.RUNNING
    assert look(patient, "topologies") == []


def test_a_garbled_node_is_an_error_that_names_it(patient: Environment) -> None:
    """Commands refuse to act on it."""
    patient.statemgr.set(NodeKind.EXECUTION_STATE, "Words", b"[]")
    (finding,) = look(patient, "topologies")
    assert finding.level == "error"
    assert "executionstate/Words" in finding.text


def test_a_run_directory_of_nobody_is_named(patient: Environment, tmp_path: Path) -> None:
    """Only one of ours that is old enough, and in which no socket is open."""
    for name, age_s in (("heron-00000001", 100.0), ("heron-00000002", 0.0), ("other", 100.0)):
        folder = tmp_path / "run" / name
        folder.mkdir(mode=0o700)
        then = folder.stat().st_mtime - age_s
        os.utime(folder, (then, then))
    (finding,) = look(patient, "run directories")
    assert finding.text.endswith("heron-00000001: no process uses it")
    assert finding.remedy.startswith("rm -r ")
