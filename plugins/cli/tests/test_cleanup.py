"""Runs that are over: tidied up once, reported for a day, and never while they may live."""

from __future__ import annotations

import socket
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from heron.errors import UsageError
from heron.ipc.status import TopologyStatus
from heron.spi.scheduler import SchedulerState
from heron.spi.statemgr import NodeKind
from heron.state_nodes.execution_state import ExecutionState, encode_execution_state
from heron.state_nodes.report import LastReport, encode_report
from heron_cli.topologies.cleanup import end_run, free_name, package_file, remove_run
from heron_cli.topologies.environment import Environment
from heron_cli.topologies.kill_topology import HowKilled, kill_topology
from heron_cli.topologies.topology_list import TopologyEntry, list_topologies
from heron_cli.view.progress_output import QuietProgress

if TYPE_CHECKING:
    from conftest import IdleScheduler


@pytest.fixture
def run(environment: Environment, tmp_path: Path) -> ExecutionState:
    """A run whose state is written; its scheduler says ABSENT until a test says otherwise."""
    folder = tmp_path / "heron-00000001"
    folder.mkdir(mode=0o700)
    state = ExecutionState(
        topology="Words",
        topology_id="Words-1",
        submitted_at_s=1.0,
        user="me",
        host=socket.gethostname(),
        profile="here",
        package_uri="",
        run_dir=str(folder),
        log_dir="",
        attached=False,
        role="ads",
        env="prod",
    )
    write(environment, state)
    return state


def write(environment: Environment, run: ExecutionState) -> None:
    """Into its node."""
    environment.statemgr.set(NodeKind.EXECUTION_STATE, run.topology, encode_execution_state(run))


def only(environment: Environment) -> TopologyEntry:
    """The one entry that there is."""
    (entry,) = list_topologies(environment).entries
    return entry


def nodes(environment: Environment) -> list[str]:
    """Every node that there is."""
    return [kind.name for kind in NodeKind if environment.statemgr.list(kind)]


def test_a_submission_that_was_cut_off_vanishes_with_a_note(environment: Environment, run: ExecutionState) -> None:
    """Nothing of it has ever run, so there is nothing to report."""
    found = list_topologies(environment)
    assert found.entries == ()
    why = "it ended before it had a plan, or its submission was interrupted"
    assert found.notes == (f"removed what was left of topology 'Words', run Words-1: {why}",)
    assert nodes(environment) == []
    assert not Path(run.run_dir).exists()


def test_one_that_finished_is_tidied_up_silently_and_listed(environment: Environment, run: ExecutionState) -> None:
    """The topology manager's report is completed with who submitted it."""
    status = TopologyStatus("Words", run.topology_id, "failed", 1.0, error="no database", ended_at_s=5e9)
    environment.statemgr.set(NodeKind.REPORT, "Words", encode_report(LastReport(status)))
    found = list_topologies(environment)
    assert found.notes == ()
    assert nodes(environment) == ["REPORT"]
    (entry,) = found.entries
    assert (entry.state, entry.role, entry.since_s, entry.errors) == ("failed", "ads", 5e9, ("no database",))
    assert only(environment) == entry


def test_a_report_is_forgotten_after_a_day(environment: Environment, run: ExecutionState) -> None:
    """By the first command that looks."""
    environment.statemgr.delete(NodeKind.EXECUTION_STATE, "Words")
    status = TopologyStatus("Words", run.topology_id, "finished", 1.0, ended_at_s=2.0)
    environment.statemgr.set(NodeKind.REPORT, "Words", encode_report(LastReport(status, run)))
    assert list_topologies(environment).entries == ()
    assert nodes(environment) == []


@pytest.mark.usefixtures("run")
def test_one_whose_processes_vanished_has_failed(environment: Environment, scheduler: IdleScheduler) -> None:
    """A machine that was switched off: no report, but the scheduler knows that containers had been started."""
    scheduler.state, scheduler.reason = SchedulerState.FAILED, "its supervisor was killed"
    found = list_topologies(environment)
    assert found.entries[0].state == "failed"
    assert found.entries[0].errors == ("its supervisor was killed",)


@pytest.mark.parametrize(
    ("change", "remedy"),
    [({"host": "elsewhere"}, "give the command there"), ({"profile": "x"}, "give the command with `--profile x`")],
)
def test_one_of_another_host_or_profile_is_left_alone(
    environment: Environment, run: ExecutionState, change: dict[str, str], remedy: str
) -> None:
    """That nothing is known of it here does not mean that it is dead."""
    write(environment, replace(run, **change))  # type: ignore[arg-type]
    assert only(environment).state == "elsewhere"
    with pytest.raises(UsageError, match=rf"{remedy}, or remove it with `heron kill Words --profile here --force`"):
        kill_topology(environment, "Words", 0.0, QuietProgress())
    assert nodes(environment) == ["EXECUTION_STATE"]
    assert not kill_topology(environment, "Words", 0.0, QuietProgress(), force=True).left


@pytest.mark.usefixtures("run")
def test_one_that_another_command_is_at_work_on_is_left_alone(environment: Environment) -> None:
    """It may be in the middle of its submission."""
    hold = environment.statemgr.hold(NodeKind.LOCK, "Words", b"")
    assert only(environment).state == "changing"
    hold.release()


def test_a_package_whose_upload_was_not_noted_any_more_is_found_by_its_content(
    environment: Environment, run: ExecutionState, tmp_path: Path
) -> None:
    """Killed between upload and note: the same content has the same URI."""
    package_file(run).write_bytes(b"content")
    environment.uploader.upload(package_file(run), "Words")
    list_topologies(environment)
    assert list((tmp_path / "packages").iterdir()) == []


def test_a_run_directory_that_no_submission_makes_is_not_removed(
    environment: Environment, run: ExecutionState, tmp_path: Path
) -> None:
    """The state may have been changed by hand, or by somebody else."""
    for name, mode in (("precious", 0o700), ("heron-0000000x", 0o755)):
        folder = tmp_path / name
        folder.mkdir(mode=mode)
        folder.chmod(mode)
        assert not remove_run(environment, "Words", replace(run, run_dir=str(folder)), keep_report=False)
        assert folder.exists()


def test_what_cannot_be_removed_is_said_and_tried_again(environment: Environment, run: ExecutionState) -> None:
    """While anything is left, so is the node from which it can be traced."""
    write(environment, replace(run, package_uri="s3://elsewhere/words"))
    ending = kill_topology(environment, "Words", 0.0, QuietProgress())
    assert ending.manner is HowKilled.OVER
    assert [each.partition(":")[0] for each in ending.left] == ["package"]
    assert "EXECUTION_STATE" in nodes(environment)
    write(environment, run)
    assert kill_topology(environment, "Words", 0.0, QuietProgress()).left == ()
    assert "EXECUTION_STATE" not in nodes(environment)


def test_a_garbled_node_spoils_only_its_own_line(environment: Environment, run: ExecutionState) -> None:
    """One topology that was tampered with must not hide the others."""
    write(environment, replace(run, topology="Other", topology_id="Other-1", host="elsewhere"))
    environment.statemgr.set(NodeKind.EXECUTION_STATE, "Words", encode_execution_state(replace(run, topology="Wrods")))
    entries = {each.name: each for each in list_topologies(environment).entries}
    assert entries["Other"].state == "elsewhere"
    assert entries["Words"].state == "garbled"
    assert entries["Words"].errors == (
        "node executionstate/Words: belongs to topology 'Wrods'; the node was changed by hand; "
        "`heron kill Words` removes it",
    )


def test_the_job_of_another_state_manager_is_never_ended(
    environment: Environment, run: ExecutionState, scheduler: IdleScheduler
) -> None:
    """Two profiles may share a scheduler's root and not the state: one's command must not kill the other's topology."""
    scheduler.state, scheduler.whose = SchedulerState.RUNNING, "Words-2"
    report = LastReport(TopologyStatus("Words", run.topology_id, "finished", 1.0, ended_at_s=5e9))
    environment.statemgr.set(NodeKind.REPORT, "Words", encode_report(report))
    with pytest.raises(UsageError, match=r"is of run 'Words-2', which the state manager of profile 'here' does not"):
        free_name(environment, "Words")
    assert kill_topology(environment, "Words", 0.0, QuietProgress()).manner is HowKilled.OVER
    assert nodes(environment) == ["REPORT"]
    with pytest.raises(UsageError, match="with the profile that submitted it; if there is none, --force ends it"):
        kill_topology(environment, "Words", 0.0, QuietProgress())
    assert (scheduler.killed, scheduler.state) == ([], SchedulerState.RUNNING)
    assert kill_topology(environment, "Words", 0.0, QuietProgress(), force=True).manner is HowKilled.FORCED
    assert scheduler.state is SchedulerState.ABSENT


def test_a_run_whose_name_another_state_manager_has_taken_is_over(
    environment: Environment, run: ExecutionState, scheduler: IdleScheduler
) -> None:
    """A scheduler has room for one job of a name, so this run's is gone; it is tidied up, and the other goes on."""
    environment.statemgr.set(NodeKind.PACKING_PLAN, "Words", b"")
    scheduler.state, scheduler.whose = SchedulerState.RUNNING, "Words-2"
    end_run(environment, run)
    assert nodes(environment) == []
    assert (scheduler.killed, scheduler.state) == ([], SchedulerState.RUNNING)


def test_a_kill_reports_the_state_of_a_topology_that_ended_meanwhile(
    environment: Environment, run: ExecutionState, scheduler: IdleScheduler
) -> None:
    """Its topology manager has notified the observers, so `heron kill` does not."""
    scheduler.state, scheduler.whose = SchedulerState.RUNNING, run.topology_id
    status = TopologyStatus("Words", run.topology_id, "finished", 1.0, ended_at_s=2.0)
    environment.statemgr.set(NodeKind.REPORT, "Words", encode_report(LastReport(status)))
    ending = kill_topology(environment, "Words", 0.0, QuietProgress())
    assert (ending.manner, ending.state) == (HowKilled.FORCED, "finished")
