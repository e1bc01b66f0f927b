"""Cleanup of ended runs: it happens once, keeps a report for a day, and spares runs that may be alive."""

from __future__ import annotations

import json
import socket
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from heron.errors import UsageError
from heron.ipc.documents.status import TopologyStatus
from heron.spi.scheduler import SchedulerState
from heron.spi.statemgr import NodeKind
from heron.state_nodes.execution_state import ExecutionState, encode_execution_state
from heron.state_nodes.report import LastReport, encode_report
from heron_cli.topologies.diagnostics import diagnose_profile
from heron_cli.topologies.environment import Environment
from heron_cli.topologies.runs.cleanup import end_run, free_name, package_file, remove_run
from heron_cli.topologies.runs.kill_topology import HowKilled, kill_topology
from heron_cli.topologies.runs.topology_list import TopologyEntry, list_topologies
from heron_cli.view.live.quiet_progress import QuietProgress

if TYPE_CHECKING:
    from conftest import IdleScheduler


@pytest.fixture
def run(environment: Environment, tmp_path: Path) -> ExecutionState:
    """Write the state of a run; the scheduler reports ABSENT until a test changes that."""
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
    """Write the execution state into its node."""
    environment.statemgr.set(NodeKind.EXECUTION_STATE, run.topology, encode_execution_state(run))


def only(environment: Environment) -> TopologyEntry:
    """Return the only entry of the list."""
    (entry,) = list_topologies(environment).entries
    return entry


def nodes(environment: Environment) -> list[str]:
    """Return every node."""
    return [kind.name for kind in NodeKind if environment.statemgr.list(kind)]


def test_an_interrupted_submission_is_removed_with_a_note(environment: Environment, run: ExecutionState) -> None:
    """No process of it has run, so it leaves no report."""
    found = list_topologies(environment)
    assert found.entries == ()
    why = "it ended before it had a plan, or its submission was interrupted"
    assert found.notes == (f"removed what was left of topology 'Words', run Words-1: {why}",)
    assert nodes(environment) == []
    assert not Path(run.run_dir).exists()


def test_a_finished_run_is_cleaned_up_without_a_note_and_listed(environment: Environment, run: ExecutionState) -> None:
    """The report of the topology manager is completed with the user."""
    status = TopologyStatus("Words", run.topology_id, "failed", 1.0, error="no database", ended_at_s=5e9)
    environment.statemgr.set(NodeKind.REPORT, "Words", encode_report(LastReport(status)))
    found = list_topologies(environment)
    assert found.notes == ()
    assert nodes(environment) == ["REPORT"]
    (entry,) = found.entries
    assert (entry.state, entry.role, entry.since_s, entry.errors) == ("failed", "ads", 5e9, ("no database",))
    assert only(environment) == entry


def test_a_report_is_removed_after_a_day(environment: Environment, run: ExecutionState) -> None:
    """The first command that lists topologies removes it."""
    environment.statemgr.delete(NodeKind.EXECUTION_STATE, "Words")
    status = TopologyStatus("Words", run.topology_id, "finished", 1.0, ended_at_s=2.0)
    environment.statemgr.set(NodeKind.REPORT, "Words", encode_report(LastReport(status, run)))
    assert list_topologies(environment).entries == ()
    assert nodes(environment) == []


def test_a_run_is_listed_with_its_owner_its_place_and_the_container_that_does_not_run(
    environment: Environment, scheduler: IdleScheduler, run: ExecutionState
) -> None:
    """The list is what a person sees first of a topology that does not come up."""
    scheduler.state, scheduler.reason = SchedulerState.RUNNING, "no room"
    write(environment, replace(run, log_dir="/logs", version="0.1"))
    assert only(environment) == TopologyEntry(
        *("Words", "Words-1", "ads", "prod", "starting", 1.0, 0, 0),
        *("me", socket.gethostname(), "here", "/logs", "0.1", ("container 1: no room",)),
    )


@pytest.mark.usefixtures("run")
def test_a_run_whose_processes_are_gone_has_failed(environment: Environment, scheduler: IdleScheduler) -> None:
    """After a power failure there is no report, but the scheduler has started containers."""
    scheduler.state, scheduler.reason = SchedulerState.FAILED, "its supervisor was killed"
    found = list_topologies(environment)
    assert found.entries[0].state == "failed"
    assert found.entries[0].errors == ("its supervisor was killed",)


@pytest.mark.parametrize(
    ("change", "remedy"),
    [({"host": "elsewhere"}, "give the command there"), ({"profile": "x"}, "give the command with `--profile x`")],
)
def test_a_run_of_another_host_or_profile_is_not_touched(
    environment: Environment, run: ExecutionState, change: dict[str, str], remedy: str
) -> None:
    """Its scheduler cannot be asked here, so it may be alive."""
    write(environment, replace(run, **change))  # type: ignore[arg-type]
    assert only(environment).state == "elsewhere"
    with pytest.raises(UsageError, match=rf"{remedy}, or remove it with `heron kill Words --profile here --force`"):
        kill_topology(environment, "Words", 0.0, QuietProgress())
    assert nodes(environment) == ["EXECUTION_STATE"]
    assert not kill_topology(environment, "Words", 0.0, QuietProgress(), force=True).left


@pytest.mark.usefixtures("run")
def test_a_run_that_another_command_is_changing_is_not_touched(environment: Environment) -> None:
    """Its submission may be in progress."""
    hold = environment.statemgr.hold(NodeKind.LOCK, "Words", b"")
    assert only(environment).state == "changing"
    hold.release()


def test_a_package_whose_upload_was_not_recorded_is_found_by_its_content(
    environment: Environment, run: ExecutionState, tmp_path: Path
) -> None:
    """The command was killed after the upload; equal content has the same URI."""
    package_file(run).write_bytes(b"content")
    environment.uploader.upload(package_file(run), "Words")
    list_topologies(environment)
    assert list((tmp_path / "packages").iterdir()) == []


def test_a_folder_that_no_submission_can_have_made_is_not_removed(
    environment: Environment, run: ExecutionState, tmp_path: Path
) -> None:
    """A user may have changed the state by hand."""
    for name, mode in (("precious", 0o700), ("heron-0000000x", 0o755)):
        folder = tmp_path / name
        folder.mkdir(mode=mode)
        folder.chmod(mode)
        assert not remove_run(environment, "Words", replace(run, run_dir=str(folder)), keep_report=False)
        assert folder.exists()


def test_a_failed_removal_is_reported_and_repeated(environment: Environment, run: ExecutionState) -> None:
    """The execution state stays as long as something else is left."""
    write(environment, replace(run, package_uri="s3://elsewhere/words"))
    result = kill_topology(environment, "Words", 0.0, QuietProgress())
    assert result.manner is HowKilled.OVER
    assert [each.partition(":")[0] for each in result.left] == ["package"]
    assert "EXECUTION_STATE" in nodes(environment)
    write(environment, run)
    assert kill_topology(environment, "Words", 0.0, QuietProgress()).left == ()
    assert "EXECUTION_STATE" not in nodes(environment)


def test_a_damaged_node_affects_only_its_own_line(environment: Environment, run: ExecutionState) -> None:
    """A damaged topology must not hide the others."""
    write(environment, replace(run, topology="Other", topology_id="Other-1", host="elsewhere"))
    environment.statemgr.set(NodeKind.EXECUTION_STATE, "Words", encode_execution_state(replace(run, topology="Wrods")))
    entries = {each.name: each for each in list_topologies(environment).entries}
    assert entries["Other"].state == "elsewhere"
    assert entries["Words"].state == "garbled"
    assert entries["Words"].errors == (
        "node executionstate/Words: belongs to topology 'Wrods'; the node was changed by hand; "
        "`heron kill Words` removes it",
    )


@pytest.mark.parametrize("kind", [NodeKind.EXECUTION_STATE, NodeKind.REPORT])
def test_the_nodes_of_a_newer_version_are_not_removed(
    environment: Environment, run: ExecutionState, kind: NodeKind
) -> None:
    """They are not damaged, so the remedy is an upgrade; only `--force` removes them."""
    report = encode_report(LastReport(TopologyStatus("Words", run.topology_id, "finished", 1.0), run))
    document = json.loads(encode_execution_state(run) if kind is NodeKind.EXECUTION_STATE else report)
    environment.statemgr.set(kind, "Words", json.dumps({**document, "format": 99}).encode())
    before = nodes(environment)
    with pytest.raises(UsageError, match=r"has format 99.* upgrade heron-core"):
        free_name(environment, "Words")
    with pytest.raises(UsageError, match=r"has format 99.* upgrade heron-core"):
        kill_topology(environment, "Words", 0.0, QuietProgress())
    found = [each for each in diagnose_profile(environment) if each.check == "topologies"]
    assert [each.remedy for each in found] == ["pip install -U heron-core"]
    assert nodes(environment) == before
    assert not kill_topology(environment, "Words", 0.0, QuietProgress(), force=True).left


def test_the_job_of_another_state_manager_is_not_ended(
    environment: Environment, run: ExecutionState, scheduler: IdleScheduler
) -> None:
    """Two profiles may share the root of a scheduler but not the state manager."""
    scheduler.state, scheduler.topology_id = SchedulerState.RUNNING, "Words-2"
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
    """A scheduler has one job for each name: the job of this run has ended, and the other job continues."""
    environment.statemgr.set(NodeKind.PACKING_PLAN, "Words", b"")
    scheduler.state, scheduler.topology_id = SchedulerState.RUNNING, "Words-2"
    end_run(environment, run)
    assert nodes(environment) == []
    assert (scheduler.killed, scheduler.state) == ([], SchedulerState.RUNNING)


def test_a_kill_reports_the_state_of_a_topology_that_ended_meanwhile(
    environment: Environment, run: ExecutionState, scheduler: IdleScheduler
) -> None:
    """The topology manager has notified the observers, so `heron kill` does not."""
    scheduler.state, scheduler.topology_id = SchedulerState.RUNNING, run.topology_id
    status = TopologyStatus("Words", run.topology_id, "finished", 1.0, ended_at_s=2.0)
    environment.statemgr.set(NodeKind.REPORT, "Words", encode_report(LastReport(status)))
    result = kill_topology(environment, "Words", 0.0, QuietProgress())
    assert (result.manner, result.state) == (HowKilled.FORCED, "finished")
