"""Submissions: the order of the steps, their reversal after a failure, and the lock of each name."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from heron.api.api_constants import TOPOLOGY_RELIABILITY_MODE, TopologyReliabilityMode
from heron.driver_kit.core_version import core_version
from heron.errors import ConfigError, HeronError, PackageError, SchedulerError, StateError, UsageError
from heron.ipc.documents.status import TopologyStatus
from heron.kernel.package import unpack
from heron.kernel.settings import EngineSettings
from heron.spi.driver import DriverRef
from heron.spi.scheduler import Scheduler, SchedulerState
from heron.spi.statemgr import NodeKind
from heron.spi.uploader import Uploader
from heron.state_nodes.execution_state import ExecutionState, decode_execution_state
from heron.state_nodes.plans import decode_packing_plan, decode_topology
from heron.state_nodes.report import LastReport, encode_report
from heron_cli.commands.submit import PACKAGE_STEPS, SUBMIT_STEPS
from heron_cli.launch.loading.loaded import LoadingTopology
from heron_cli.launch.prepare import Prepared, prepare
from heron_cli.launch.submission import Submission, Terms, new_submission, start_topology
from heron_cli.profiles.overrides import Overrides
from heron_cli.topologies.environment import Environment
from heron_cli.topologies.run_nodes import read_report
from heron_cli.topologies.runs.cleanup import end_run
from heron_cli.topologies.runs.discovery import discover
from heron_cli.view.live.quiet_progress import QuietProgress

if TYPE_CHECKING:
    from conftest import IdleScheduler, WordsFile

CLASS = """
class Words(Topology):
    lines = Lines.spec(par=1)
    count = Count.spec(par=2, inputs=[lines])
"""


@pytest.fixture
def submission(words_file: WordsFile, environment: Environment, tmp_path: Path) -> Submission:
    """Return the submission of a topology with three tasks."""
    with LoadingTopology(str(words_file(CLASS)), ("--x",)) as loading:
        loaded = loading.result()
    run_dir = tmp_path / "heron-00000001"
    prepared = prepare(loaded, environment.profile, Overrides())
    terms = Terms(role="ads", attached=True)
    return Submission(prepared, "Words-1", run_dir, tmp_path / "logs", EngineSettings(), terms=terms)


class Notes:
    """A `Progress` that records steps and notes; it cancels before the step with the number `cancelled`."""

    def __init__(self, cancelled: int = 0) -> None:
        self.texts: list[str] = []
        self.steps: list[str] = []
        self._cancelled = cancelled

    def step(self, text: str) -> None:
        """Record the text."""
        self.steps.append(text)
        if len(self.steps) == self._cancelled:
            raise KeyboardInterrupt

    def note(self, text: str) -> None:
        """Record the text."""
        self.texts.append(text)

    def uploading(self, uploader: Uploader, size_bytes: int) -> AbstractContextManager[None]:
        """Do nothing."""
        return nullcontext()

    def scheduling(self, scheduler: Scheduler) -> AbstractContextManager[None]:
        """Do nothing."""
        return nullcontext()


class NoNotes(Notes):
    """For submissions that must not find remains of another run."""

    def note(self, text: str) -> None:
        """Fail the test."""
        raise AssertionError(text)


def another(submission: Submission) -> Submission:
    """Return another submission of the same topology."""
    run_dir = submission.run_dir.with_name("heron-00000002")
    return replace(submission, topology_id="Words-2", run_dir=run_dir)


def left_behind(environment: Environment, tmp_path: Path) -> list[str]:
    """Return every node and package."""
    nodes = [kind.name for kind in NodeKind if environment.statemgr.list(kind)]
    return nodes + [each.name for each in (tmp_path / "packages").glob("*.tar.gz")]


def test_state_package_and_job_agree(
    environment: Environment, scheduler: IdleScheduler, submission: Submission, tmp_path: Path
) -> None:
    """All nodes that executors and managers read exist before the job is scheduled."""
    state = start_topology(environment, submission, NoNotes())
    statemgr = environment.statemgr
    topology = statemgr.get(NodeKind.TOPOLOGY, "Words")
    plan = statemgr.get(NodeKind.PACKING_PLAN, "Words")
    written = statemgr.get(NodeKind.EXECUTION_STATE, "Words")
    assert topology
    assert plan
    assert written
    assert decode_topology(topology.value, "node") == submission.loaded.definition
    assert decode_packing_plan(plan.value, "node") == submission.prepared.plan
    assert decode_execution_state(written.value, "Words") == state
    environment.uploader.download(state.package_uri, tmp_path / "fetched")
    assert unpack(tmp_path / "fetched", tmp_path / "unpacked").argv == ("--x",)
    (job,) = scheduler.jobs
    assert [each.container_id for each in job.containers] == [0, 1]
    assert discover(environment, "Words").containers == len(job.containers)
    assert job.attached
    assert list(submission.run_dir.iterdir()) == []


def of_package(environment: Environment, submission: Submission, tmp_path: Path) -> Submission:
    """Return the submission of a package that is stored already."""
    package = tmp_path / "package"
    package.write_text("stored before")
    uri = environment.uploader.upload(package, "Words")
    loaded = replace(submission.loaded, package_uri=uri)
    return replace(submission, prepared=replace(submission.prepared, loaded=loaded))


def test_a_stored_package_is_used_as_it_is(
    environment: Environment, scheduler: IdleScheduler, submission: Submission, tmp_path: Path
) -> None:
    """`heron submit --package` uploads nothing; a run that is over removes the package as any other."""
    stored = of_package(environment, submission, tmp_path)
    notes = Notes()
    state = start_topology(environment, stored, notes)
    assert len(notes.steps) == PACKAGE_STEPS - 1
    assert {each.package_uri for each in scheduler.jobs[0].containers} == {stored.loaded.package_uri}
    assert [each.uri for each in environment.uploader.packages()] == [state.package_uri]
    end_run(environment, state)
    assert environment.uploader.packages() == ()


def test_a_stored_package_is_started_again(
    environment: Environment, scheduler: IdleScheduler, submission: Submission, tmp_path: Path
) -> None:
    """The remains of the ended run go, but not the package, which both runs have."""
    stored = of_package(environment, submission, tmp_path)
    start_topology(environment, stored, NoNotes())
    scheduler.state = SchedulerState.ABSENT
    again = start_topology(environment, another(stored), Notes())
    assert (again.topology_id, again.package_uri) == ("Words-2", stored.loaded.package_uri)
    assert [each.uri for each in environment.uploader.packages()] == [again.package_uri]


def test_a_stored_package_that_was_removed_meanwhile_is_not_started(
    environment: Environment, scheduler: IdleScheduler, submission: Submission, tmp_path: Path
) -> None:
    """The end of the run before removed it while the command loaded it; no container could download it."""
    stored = of_package(environment, submission, tmp_path)
    environment.uploader.undo(stored.loaded.package_uri)
    with pytest.raises(PackageError, match="was removed meanwhile; `heron packages list`"):
        start_topology(environment, stored, NoNotes())
    assert scheduler.jobs == []
    assert left_behind(environment, tmp_path) == []


def test_a_failed_submission_of_a_stored_package_leaves_it(
    environment: Environment, scheduler: IdleScheduler, submission: Submission, tmp_path: Path
) -> None:
    """The submission has not stored it, so its failure is no reason to remove it."""
    stored = of_package(environment, submission, tmp_path)
    scheduler.refusal = "no room"
    with pytest.raises(SchedulerError, match="no room"):
        start_topology(environment, stored, NoNotes())
    assert [each.uri for each in environment.uploader.packages()] == [stored.loaded.package_uri]
    assert left_behind(environment, tmp_path) == [Path(stored.loaded.package_uri).name]


@pytest.mark.parametrize("mode", [each.value for each in TopologyReliabilityMode])
def test_only_effectively_once_has_a_checkpoint_store(
    environment: Environment, scheduler: IdleScheduler, submission: Submission, mode: str
) -> None:
    """The other modes run in processes that know no store."""
    store = DriverRef("checkpoint", "localfs", "m:C", {"root": "checkpoints"})
    profile = replace(environment.profile, checkpoint=store)
    made = new_submission(profile, with_mode(submission.prepared, mode), (), Terms())
    start_topology(environment, made, NoNotes())
    found = [each.checkpoint for each in scheduler.jobs[0].containers]
    assert found == [store if mode == TopologyReliabilityMode.EFFECTIVELY_ONCE else None] * 2


def test_effectively_once_without_a_checkpoint_store_is_refused(
    environment: Environment, submission: Submission
) -> None:
    """The refusal names the file to change. Nothing has been written then."""
    prepared = with_mode(submission.prepared, TopologyReliabilityMode.EFFECTIVELY_ONCE.value)
    with pytest.raises(ConfigError, match=r"'Words': .* profile 'here' has none; add `checkpoint: .*here\.yaml"):
        new_submission(environment.profile, prepared, (), Terms())


def with_mode(prepared: Prepared, mode: str) -> Prepared:
    """Return the topology with that reliability mode."""
    loaded = prepared.loaded
    definition = replace(loaded.definition, config={**loaded.definition.config, TOPOLOGY_RELIABILITY_MODE: mode})
    return replace(prepared, loaded=replace(loaded, definition=definition))


def test_a_failed_schedule_leaves_nothing(
    environment: Environment, scheduler: IdleScheduler, submission: Submission, tmp_path: Path
) -> None:
    """After a failure of the last step, nodes and package are removed and the name is free."""
    scheduler.refusal = "no room"
    with pytest.raises(SchedulerError, match="no room"):
        start_topology(environment, submission, NoNotes())
    assert left_behind(environment, tmp_path) == []
    scheduler.refusal = ""
    start_topology(environment, submission, NoNotes())


def test_a_node_that_cannot_be_written_undoes_the_upload(
    environment: Environment, submission: Submission, tmp_path: Path
) -> None:
    """A folder in the place of the node makes a step in the middle fail."""
    in_the_way = tmp_path / "state" / NodeKind.PACKING_PLAN.value / "Words"
    in_the_way.mkdir(parents=True)
    with pytest.raises(HeronError):
        start_topology(environment, submission, NoNotes())
    in_the_way.rmdir()
    assert left_behind(environment, tmp_path) == []


def test_a_refused_submission_leaves_the_last_runs_report(
    environment: Environment, scheduler: IdleScheduler, submission: Submission
) -> None:
    """The last run is still listed."""
    former = LastReport(TopologyStatus("Words", "Words-0", "finished", 1.0))
    environment.statemgr.set(NodeKind.REPORT, "Words", encode_report(former))
    scheduler.refusal = "no room"
    with pytest.raises(SchedulerError, match="no room"):
        start_topology(environment, submission, NoNotes())
    assert read_report(environment.statemgr, "Words") == former


def test_ctrl_c_in_the_last_step_undoes_that_step_too(
    environment: Environment, scheduler: IdleScheduler, submission: Submission, tmp_path: Path
) -> None:
    """A slow scheduler does not check for Ctrl-C, so the job exists when Ctrl-C is noticed."""
    with pytest.raises(KeyboardInterrupt):
        start_topology(environment, submission, QuietProgress(lambda: bool(scheduler.jobs)))
    assert scheduler.killed == ["Words"]
    assert left_behind(environment, tmp_path) == []
    assert not submission.log_dir.exists()


@pytest.mark.parametrize("step", range(1, SUBMIT_STEPS))  # the first of the shown steps is the loading
def test_ctrl_c_between_two_steps_undoes_the_steps_before(
    environment: Environment, scheduler: IdleScheduler, submission: Submission, tmp_path: Path, step: int
) -> None:
    """The command then reports that nothing was started."""
    progress = Notes(cancelled=step)
    with pytest.raises(KeyboardInterrupt):
        start_topology(environment, submission, progress)
    assert len(progress.steps) == step
    assert scheduler.jobs == []
    assert left_behind(environment, tmp_path) == []
    assert not submission.run_dir.exists()
    assert not submission.log_dir.exists()


def test_a_package_that_cannot_be_stored_undoes_the_rest(
    environment: Environment, submission: Submission, tmp_path: Path
) -> None:
    """The store may be full or read-only; here a file replaces its folder. No state of the topology is left."""
    (tmp_path / "packages").touch()
    with pytest.raises(PackageError, match="cannot be stored"):
        start_topology(environment, submission, NoNotes())
    (tmp_path / "packages").unlink()
    assert left_behind(environment, tmp_path) == []
    assert not submission.run_dir.exists()


def test_the_state_names_the_run_directory_before_it_is_made(environment: Environment, submission: Submission) -> None:
    """The next command can then find the run directory of a killed command."""
    seen: list[ExecutionState] = []

    class Looks(NoNotes):
        def step(self, text: str) -> None:
            node = environment.statemgr.get(NodeKind.EXECUTION_STATE, "Words")
            assert node
            seen.append(decode_execution_state(node.value, "Words"))
            assert submission.run_dir.exists() == (len(seen) > 1), text

    run = start_topology(environment, submission, Looks())
    assert [bool(each.package_uri) for each in seen] == [False, False, True, True]
    assert seen[-1] == run
    assert (run.role, run.env, run.version) == ("ads", "default", core_version())


def test_a_running_topology_of_that_name_is_not_touched(
    environment: Environment, scheduler: IdleScheduler, submission: Submission
) -> None:
    """The second submission is refused; the error names the user of the first."""
    start_topology(environment, submission, NoNotes())
    with pytest.raises(UsageError, match=r"topology 'Words' is already running \(id Words-1, since .*; stop it"):
        start_topology(environment, another(submission), NoNotes())
    assert len(scheduler.jobs) == 1
    assert environment.statemgr.get(NodeKind.TOPOLOGY, "Words")


def test_a_live_topology_manager_counts_as_running(environment: Environment, submission: Submission) -> None:
    """The scheduler of another profile may run it."""
    hold = environment.statemgr.hold(NodeKind.TMANAGER_LOCATION, "Words", b"{}")
    with pytest.raises(UsageError, match="already running"):
        start_topology(environment, submission, NoNotes())
    hold.release()


def test_two_submissions_exclude_each_other(environment: Environment, submission: Submission) -> None:
    """The lock of the topology covers the check and the writes."""
    hold = environment.statemgr.hold(NodeKind.LOCK, "Words", b"other")
    with pytest.raises(UsageError, match="another command is at work on it"):
        start_topology(environment, submission, NoNotes())
    hold.release()


def test_the_remains_of_a_dead_run_are_removed_with_a_note(
    environment: Environment, scheduler: IdleScheduler, submission: Submission, tmp_path: Path
) -> None:
    """`kill -9` of `heron run` leaves nodes, which must not block the name."""
    start_topology(environment, submission, NoNotes())
    environment.statemgr.set(NodeKind.REPORT, "Words", b"old")
    scheduler.state = SchedulerState.ABSENT
    notes = Notes()
    start_topology(environment, another(submission), notes)
    assert notes.texts == [
        "removed what was left of topology 'Words' of run Words-1, which had ended without cleaning up"
    ]
    assert environment.statemgr.get(NodeKind.REPORT, "Words") is None
    assert len(list((tmp_path / "packages").glob("*.tar.gz"))) == 1


def test_damaged_state_does_not_block_the_name(environment: Environment, submission: Submission) -> None:
    """A node that cannot be read does not belong to a running topology."""
    environment.statemgr.set(NodeKind.EXECUTION_STATE, "Words", b"{]")
    environment.statemgr.set(NodeKind.TOPOLOGY, "Words", b"{]")
    notes = Notes()
    start_topology(environment, submission, notes)
    assert len(notes.texts) == 1


def test_ending_a_run_leaves_nothing(
    environment: Environment, scheduler: IdleScheduler, submission: Submission, tmp_path: Path
) -> None:
    """Job, package, nodes and run directory are removed."""
    state = start_topology(environment, submission, NoNotes())
    end_run(environment, state)
    assert scheduler.killed == ["Words"]
    assert left_behind(environment, tmp_path) == []
    assert not submission.run_dir.exists()


def test_ending_a_run_spares_a_newer_run_of_its_name(
    environment: Environment, scheduler: IdleScheduler, submission: Submission
) -> None:
    """A late command must not end the topology of another user."""
    first = start_topology(environment, submission, NoNotes())
    scheduler.state = SchedulerState.ENDED
    start_topology(environment, another(submission), Notes())
    scheduler.killed.clear()
    end_run(environment, first)
    assert scheduler.killed == []
    assert environment.statemgr.get(NodeKind.TOPOLOGY, "Words")


def test_an_execution_state_of_something_else_is_refused() -> None:
    """The error names the topology."""
    expected = r"node executionstate/Words: the execution state of topology 'Words' cannot be read.*`heron kill Words`"
    with pytest.raises(StateError, match=expected):
        decode_execution_state(b"[]", "Words")
