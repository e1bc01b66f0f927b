"""Starts a topology step by step: lock, execution state, package, upload, state, scheduler.

A failure undoes the steps before it, in reverse. The execution state is written first and names everything that may
exist. So a command that is killed at any instant leaves nothing that the next command cannot find.
"""

from __future__ import annotations

import logging
import secrets
import shutil
import socket
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from heron.clock import wall_s
from heron.driver_kit.core_version import core_version
from heron.errors import HeronError, PackageError, StateConflictError, StateError, StateUnavailableError
from heron.ipc.keys import new_keys
from heron.ipc.network import check_listening
from heron.kernel.manifest import PackageManifest
from heron.kernel.package import pack
from heron.kernel.settings import EngineSettings
from heron.planner.packing_plan import NO_RESOURCE
from heron.spi.driver import DriverRef
from heron.spi.scheduler import Job, PlannedRun, ServiceSpec
from heron.spi.statemgr import MUST_NOT_EXIST, NodeKind, StateManager
from heron.state_nodes.execution_state import ExecutionState, encode_execution_state
from heron.state_nodes.plans import encode_plan
from heron.state_nodes.report import LastReport, encode_report
from heron.state_nodes.scheduler_location import encode_scheduler_location
from heron.state_nodes.topology_keys import encode_keys
from heron_cli.catalog.other_plugins import observer_entries
from heron_cli.launch.container_specs import checkpoint_store, container_specs
from heron_cli.launch.loading.loaded import LoadedTopology
from heron_cli.launch.prepare import Prepared, load_target, prepare
from heron_cli.launch.services import profile_services
from heron_cli.launch.start_from import start_from
from heron_cli.launch.target import DEFAULT_ENV, user_name
from heron_cli.profiles import Profile
from heron_cli.profiles.overrides import engine_settings
from heron_cli.topologies.environment import Environment, ProfileChoice, lifecycle_hooks, without_secrets
from heron_cli.topologies.hosts import avoid_blocked_hosts
from heron_cli.topologies.progress import Progress
from heron_cli.topologies.run_nodes import read_report, topologies
from heron_cli.topologies.runs.cleanup import acquire_lock, clean_up, free_name, logs_in_use, package_file, remove_run
from heron_cli.topologies.runs.run_folders import make_log_dir, make_run_dir, name_log_dir, name_run_dir, prune_logs

__all__ = [
    "Submission",
    "Terms",
    "manifest_of",
    "new_submission",
    "new_topology_id",
    "plan_run",
    "start_detached",
    "start_topology",
    "submit_target",
]

_log = logging.getLogger(__name__)

_LOCK_WAIT_S = 2.0  # commands that only read or clean up release the lock within milliseconds


@dataclass(frozen=True, slots=True)
class Terms:
    """How a topology is to run. Without a `role` it is the user's name. With `deactivated` it begins paused.

    An `attached` run ends with the command that started it.
    """

    role: str = ""
    env: str = DEFAULT_ENV
    deactivated: bool = False
    attached: bool = False


@dataclass(frozen=True, slots=True)
class Submission:
    """A topology to start, and its folders and settings; `run_dir` and `log_dir` name folders that do not exist yet."""

    prepared: Prepared
    topology_id: str
    run_dir: Path
    log_dir: Path
    settings: EngineSettings
    hooks: tuple[str, ...] = ()
    terms: Terms = Terms()
    checkpoint: DriverRef | None = None
    services: tuple[ServiceSpec, ...] = ()

    @property
    def loaded(self) -> LoadedTopology:
        """The topology and the files of its program."""
        return self.prepared.loaded


def new_topology_id(topology: str) -> str:
    """Return an id for one run of a topology: its name and 32 random bits."""
    return f"{topology}-{secrets.token_hex(4)}"


def new_submission(profile: Profile, prepared: Prepared, hooks: Sequence[str], terms: Terms) -> Submission:
    """Name the folders of a new run and choose its settings; nothing is made yet.

    Raises:
        UsageError: when there is no folder for the run directory.
        LimitExceededError: when socket paths in it could become too long.
        ConfigError: when the topology needs a checkpoint store, and the profile has none.
        MissingDriverError: when the profile asks for a health manager, and none is installed.
    """
    definition = prepared.loaded.definition
    topology_id = new_topology_id(definition.name)
    on_failure = "stop" if terms.attached else profile.engine.on_failure
    return Submission(
        prepared,
        topology_id,
        name_run_dir(profile.run_dir),
        name_log_dir(profile.log_dir, topology_id),
        engine_settings(profile.engine, definition, on_failure),
        tuple(hooks),
        terms,
        checkpoint_store(profile, definition),
        profile_services(profile),
    )


def plan_run(profile: Profile, prepared: Prepared, hooks: Sequence[str], terms: Terms) -> tuple[Job, PlannedRun]:
    """Return the job that a submission would give its scheduler, and what it would store before; makes nothing.

    Raises:
        PackageError: when a file of the topology cannot be packed.
        HeronError: as `new_submission` does.
    """
    submission = new_submission(profile, prepared, hooks, terms)
    run = _execution_state(profile, submission)
    job = _job(profile, submission, run)
    with tempfile.TemporaryDirectory() as folder:
        package = Path(folder, "package")
        pack(submission.loaded.root, submission.loaded.files, manifest_of(submission.loaded), package)
        nodes = {NodeKind.EXECUTION_STATE: encode_execution_state(run), **_nodes(submission, run)}
        containers = tuple(each.container_id for each in job.containers)
        stored = {kind.value: value for kind, value in nodes.items()}
        return job, PlannedRun(run.topology, containers, stored, package.read_bytes())


def manifest_of(loaded: LoadedTopology) -> PackageManifest:
    """Return the manifest of a loaded topology; its files are not hashed yet."""
    return PackageManifest(
        topology=loaded.definition.name,
        module=loaded.module,
        files={},
        script=loaded.script,
        choice=loaded.choice,
        argv=loaded.argv,
        origin=str(loaded.root),
        import_paths=loaded.import_paths,
        compat=loaded.compat,
    )


def submit_target(
    environment: Environment,
    choice: ProfileChoice,
    target: str | LoadedTopology,
    arguments: Sequence[str],
    *,
    labels: tuple[str, str, bool],
    from_checkpoint: str = "",
    progress: Progress,
) -> tuple[ExecutionState, int]:
    """Start a topology that continues when this process ends; return its run and the number of its containers.

    The number includes container 0. `labels` are the role, the environment, and whether the topology begins paused.
    `from_checkpoint` is as for `start_from`.
    """
    role, env, deactivated = labels
    prepared = prepare(
        load_target(target, arguments, choice), environment.profile, choice.overrides, without=choice.without
    )
    prepared = start_from(prepared, environment.profile, from_checkpoint)
    terms = Terms(role, env or DEFAULT_ENV, deactivated)
    run = start_detached(environment, prepared, observer_entries(choice.without), terms, progress)
    return run, len(prepared.plan.containers) + 1


def start_detached(
    environment: Environment, prepared: Prepared, hooks: Sequence[str], terms: Terms, progress: Progress
) -> ExecutionState:
    """Start a topology that runs on when this process ends; then clean up after other runs that are over.

    Raises as `start_topology` does.
    """
    with lifecycle_hooks(hooks) as observers:
        run = start_topology(environment, new_submission(environment.profile, prepared, hooks, terms), progress)
        observers.notify("heron_topology_submitted", topology=run.topology, topology_id=run.topology_id)
        try:
            for name in topologies(environment.statemgr):
                if name != run.topology and (note := clean_up(environment, name)):
                    progress.note(note)
            prune_logs(Path(run.log_dir).parent, logs_in_use(environment.statemgr))
        except HeronError as error:  # this topology was submitted all the same
            progress.note(f"the state of earlier topologies could not be checked: {error}")
    return run


def start_topology(environment: Environment, submission: Submission, progress: Progress) -> ExecutionState:
    """Pack and upload the program, write the state and hand the job to the scheduler.

    `progress` receives a note about an earlier run of that name that had not cleaned up.

    Raises:
        UsageError: when a topology of that name is running or another command is at work on it.
        HeronError: when a step fails; everything before it is undone.
        KeyboardInterrupt: when `progress` cancels between two steps or in a long one; everything is undone.
    """
    name = submission.loaded.definition.name
    if "shared" not in environment.scheduler.capabilities:  # the topology runs here, so a wrong address shows here
        check_listening(submission.settings.network_host)
    lock = acquire_lock(environment.statemgr, name, _LOCK_WAIT_S)
    former: LastReport | None = None
    try:
        former = _former_report(environment.statemgr, name)
        _check_stored(environment, submission.loaded.package_uri)
        if note := free_name(environment, name, keep=submission.loaded.package_uri):
            progress.note(note)
        run = _execution_state(environment.profile, submission)
        _write_run(environment, run, expected=MUST_NOT_EXIST)
        try:
            if submission.loaded.package_uri:
                _make_folders(run)
                run = replace(run, package_uri=submission.loaded.package_uri)
                _write_run(environment, run)
            else:
                package = _pack(submission, run, progress)
                progress.step(f"uploading {package.stat().st_size / 1e6:.1f} MB")
                with progress.uploading(environment.uploader, package.stat().st_size):
                    run = replace(run, package_uri=environment.uploader.upload(package, name))
                _write_run(environment, run)
                package.unlink()
            _start(environment, submission, run, progress)
        except BaseException:
            # A package that was stored before the submission stays.
            _undo(environment, replace(run, package_uri="") if submission.loaded.package_uri else run)
            raise
    except BaseException:
        if former:
            _restore_report(environment.statemgr, name, former)
        raise
    finally:
        lock.release()
    return run


def _check_stored(environment: Environment, uri: str) -> None:
    """Check that a stored package is there still: the end of the run before, or a prune, may have removed it.

    Raises:
        PackageError: when it is not; nothing was changed.
    """
    if uri and all(each.uri != uri for each in environment.uploader.packages()):
        msg = f"package {uri}: was removed meanwhile; `heron packages list` shows what there is"
        raise PackageError(msg)


def _former_report(statemgr: StateManager, name: str) -> LastReport | None:
    """Return the last report of that name, which a failed submission restores."""
    try:
        return read_report(statemgr, name)
    except StateUnavailableError:
        raise
    except StateError:
        return None  # damaged: it is removed with the rest of that run


def _restore_report(statemgr: StateManager, name: str, report: LastReport) -> None:
    """Write the report again; a failure here must not hide the original error."""
    try:
        statemgr.set(NodeKind.REPORT, name, encode_report(report), expected=MUST_NOT_EXIST)
    except StateConflictError:
        return  # it still exists, or a newer one
    except HeronError as error:
        _log.warning("topology %s: its last report is lost: %s", name, error)


def _write_run(environment: Environment, run: ExecutionState, expected: int | None = None) -> None:
    value = encode_execution_state(run)
    environment.statemgr.set(NodeKind.EXECUTION_STATE, run.topology, value, expected=expected)


def _pack(submission: Submission, run: ExecutionState, progress: Progress) -> Path:
    """Make the package; it stays in the run directory until the state names the place of the upload."""
    loaded = submission.loaded
    progress.step(f"packing {len(loaded.files)} files")
    _make_folders(run)
    package = package_file(run)
    pack(loaded.root, loaded.files, manifest_of(loaded), package)
    return package


def _make_folders(run: ExecutionState) -> None:
    make_run_dir(Path(run.run_dir))
    make_log_dir(Path(run.log_dir))


def _start(environment: Environment, submission: Submission, run: ExecutionState, progress: Progress) -> None:
    progress.step("writing the state")
    plan = submission.prepared.plan
    for kind, value in _nodes(submission, run).items():
        environment.statemgr.set(kind, run.topology, value, expected=MUST_NOT_EXIST)
    progress.step(f"starting {len(plan.containers) + 1} containers")
    with without_secrets(environment.profile), progress.scheduling(environment.scheduler):
        avoid_blocked_hosts(environment.scheduler, environment.statemgr)
        environment.scheduler.schedule(_job(environment.profile, submission, run))


def _nodes(submission: Submission, run: ExecutionState) -> dict[NodeKind, bytes]:
    """Return what a run stores besides EXECUTION_STATE."""
    return {
        NodeKind.TOPOLOGY: encode_plan(submission.loaded.definition),
        NodeKind.KEYS: encode_keys(new_keys()),
        NodeKind.PACKING_PLAN: encode_plan(submission.prepared.plan),
        NodeKind.SCHEDULER_LOCATION: encode_scheduler_location(run),
    }


def _undo(environment: Environment, run: ExecutionState) -> None:
    """Undo the steps in reverse; a failure here must not hide the original error."""
    if not run.package_uri:
        package_file(run).unlink(missing_ok=True)  # a failed upload has stored nothing
    for left in remove_run(environment, run.topology, run, keep_report=False):
        _log.warning("topology %s: could not be undone: %s; see `heron doctor`", run.topology, left)
    shutil.rmtree(run.log_dir, ignore_errors=True)


def _execution_state(profile: Profile, submission: Submission) -> ExecutionState:
    terms = submission.terms
    return ExecutionState(
        topology=submission.loaded.definition.name,
        topology_id=submission.topology_id,
        submitted_at_s=wall_s(),
        user=user_name(),
        host=socket.gethostname(),
        profile=profile.name,
        package_uri="",
        run_dir=str(submission.run_dir),
        log_dir=str(submission.log_dir),
        attached=terms.attached,
        role=terms.role or user_name(),
        env=terms.env,
        version=core_version(),
        deactivated=terms.deactivated,
    )


def _job(profile: Profile, submission: Submission, run: ExecutionState) -> Job:
    prepared = submission.prepared
    required = {0: NO_RESOURCE} | {each.container_id: each.required for each in prepared.plan.containers}
    specs = container_specs(
        profile,
        run,
        required,
        submission.settings,
        submission.hooks,
        (*prepared.serializers, *prepared.state_backends),
        submission.checkpoint,
    )
    specs = tuple(each if each.container_id else replace(each, services=submission.services) for each in specs)
    attached = submission.terms.attached
    return Job(run.topology, run.topology_id, specs, attached, owner=run.user, role=run.role, env=run.env)
