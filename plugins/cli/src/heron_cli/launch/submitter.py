"""Brings a topology to its scheduler step by step; what was done before a failure is undone, in reverse."""

from __future__ import annotations

import logging
import secrets
import shutil
import socket
from dataclasses import dataclass, replace
from pathlib import Path

from heron.clock import wall_s
from heron.driver_kit.core_version import core_version
from heron.errors import HeronError, StateConflictError, StateError, StateUnavailableError
from heron.ipc.keys import new_keys
from heron.ipc.network import check_listening
from heron.kernel.manifest import PackageManifest
from heron.kernel.package import pack
from heron.kernel.settings import EngineSettings
from heron.planner.packing_plan import NO_RESOURCE, PackingPlan
from heron.spi.driver import DriverRef
from heron.spi.scheduler import ContainerSpec, Job
from heron.spi.statemgr import MUST_NOT_EXIST, NodeKind, StateManager
from heron.state_nodes.execution_state import ExecutionState, encode_execution_state
from heron.state_nodes.keys import encode_keys
from heron.state_nodes.plans import encode_plan
from heron.state_nodes.report import LastReport, encode_report
from heron.state_nodes.scheduler_location import encode_scheduler_location
from heron_cli.client.cleanup import lock_soon, make_room
from heron_cli.client.discovery import read_report
from heron_cli.client.environment import Environment, without_secrets
from heron_cli.client.removal import package_file, remove_run
from heron_cli.launch.folders import make_log_dir, make_run_dir
from heron_cli.launch.loaded import LoadedTopology
from heron_cli.launch.target import DEFAULT_ENV, user_name
from heron_cli.view.progress import Progress

__all__ = ["STEPS", "Submission", "manifest_of", "new_topology_id", "submit"]

_log = logging.getLogger(__name__)

_LOCK_WAIT_S = 2.0  # a command that only looks or tidies up gives the lock back within milliseconds


@dataclass(frozen=True, slots=True)
class Submission:
    """What is to run, and where on this machine or another; `run_dir` and `log_dir` are names of folders to be made.

    Without a `role` it is the user's name.
    """

    loaded: LoadedTopology
    plan: PackingPlan
    topology_id: str
    run_dir: Path
    log_dir: Path
    settings: EngineSettings
    hooks: tuple[str, ...] = ()
    serializers: tuple[DriverRef, ...] = ()
    attached: bool = False
    role: str = ""
    env: str = DEFAULT_ENV
    deactivated: bool = False


def new_topology_id(topology: str) -> str:
    """An id for one run of a topology: its name and 32 random bits."""
    return f"{topology}-{secrets.token_hex(4)}"


def manifest_of(loaded: LoadedTopology) -> PackageManifest:
    """The manifest of a loaded topology, its files not hashed yet."""
    return PackageManifest(
        topology=loaded.definition.name,
        module=loaded.module,
        files={},
        script=loaded.script,
        choice=loaded.choice,
        argv=loaded.argv,
        origin=str(loaded.root),
        import_paths=loaded.import_paths,
    )


def submit(environment: Environment, submission: Submission, progress: Progress) -> ExecutionState:
    """Packs, uploads, writes the state and schedules; `progress` hears of what a dead run had left behind.

    The execution state is written first and says what there may be, so that a command that is killed anywhere leaves
    nothing that the next one cannot trace.

    Raises:
        UsageError: when a topology of that name is running or another command is at work on it.
        HeronError: when a step fails; everything before it is undone.
        KeyboardInterrupt: when `progress` says so between two steps or in a long one; everything is undone.
    """
    name = submission.loaded.definition.name
    if "shared" not in environment.scheduler.capabilities:  # it runs here, so a wrong address shows here
        check_listening(submission.settings.network_host)
    lock = lock_soon(environment.statemgr, name, _LOCK_WAIT_S)
    former: LastReport | None = None
    try:
        former = _former_report(environment.statemgr, name)
        if left := make_room(environment, name):
            progress.note(left)
        run = _execution_state(environment, submission)
        _note(environment, run, expected=MUST_NOT_EXIST)
        try:
            package = _pack(submission, run, progress)
            progress.step(f"uploading {package.stat().st_size / 1e6:.1f} MB")
            with progress.uploading(environment.uploader, package.stat().st_size):
                run = replace(run, package_uri=environment.uploader.upload(package, name))
            _note(environment, run)
            package.unlink()
            _start(environment, submission, run, progress)
        except BaseException:
            _undo(environment, run)
            raise
    except BaseException:
        if former:
            _put_back(environment.statemgr, name, former)
        raise
    finally:
        lock.release()
    return run


STEPS = 4
"""How many steps `submit` tells its progress of."""


def _former_report(statemgr: StateManager, name: str) -> LastReport | None:
    """How the last run of that name ended, which a submission that comes to nothing leaves as it was."""
    try:
        return read_report(statemgr, name)
    except StateUnavailableError:
        raise
    except StateError:
        return None  # damaged: it goes with what else is left of that run


def _put_back(statemgr: StateManager, name: str, report: LastReport) -> None:
    """That this fails must not hide why it is done."""
    try:
        statemgr.set(NodeKind.REPORT, name, encode_report(report), expected=MUST_NOT_EXIST)
    except StateConflictError:
        return  # it is there yet, or a newer one
    except HeronError as error:
        _log.warning("topology %s: its last report is lost: %s", name, error)


def _note(environment: Environment, run: ExecutionState, expected: int | None = None) -> None:
    value = encode_execution_state(run)
    environment.statemgr.set(NodeKind.EXECUTION_STATE, run.topology, value, expected=expected)


def _pack(submission: Submission, run: ExecutionState, progress: Progress) -> Path:
    """The package, which stays in the run directory until the state says where it was uploaded to."""
    loaded = submission.loaded
    progress.step(f"packing {len(loaded.files)} files")
    make_run_dir(Path(run.run_dir))
    make_log_dir(Path(run.log_dir))
    package = package_file(run)
    pack(loaded.root, loaded.files, manifest_of(loaded), package)
    return package


def _start(environment: Environment, submission: Submission, run: ExecutionState, progress: Progress) -> None:
    progress.step("writing the state")
    for kind, value in (
        (NodeKind.TOPOLOGY, encode_plan(submission.loaded.definition)),
        (NodeKind.KEYS, encode_keys(new_keys())),
        (NodeKind.PACKING_PLAN, encode_plan(submission.plan)),
        (NodeKind.SCHEDULER_LOCATION, encode_scheduler_location(run)),
    ):
        environment.statemgr.set(kind, run.topology, value, expected=MUST_NOT_EXIST)
    progress.step(f"starting {len(submission.plan.containers) + 1} containers")
    with without_secrets(environment.profile), progress.scheduling(environment.scheduler):
        environment.scheduler.schedule(_job(environment, submission, run.package_uri))


def _undo(environment: Environment, run: ExecutionState) -> None:
    """In reverse; that this fails too must not hide why it is undone."""
    if not run.package_uri:
        package_file(run).unlink(missing_ok=True)  # an upload that failed has left nothing
    for left in remove_run(environment, run.topology, run, keep_report=False):
        _log.warning("topology %s: could not be undone: %s; see `heron doctor`", run.topology, left)
    shutil.rmtree(run.log_dir, ignore_errors=True)


def _execution_state(environment: Environment, submission: Submission) -> ExecutionState:
    profile = environment.profile
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
        attached=submission.attached,
        role=submission.role or user_name(),
        env=submission.env,
        version=core_version(),
        deactivated=submission.deactivated,
    )


def _job(environment: Environment, submission: Submission, uri: str) -> Job:
    required = {0: NO_RESOURCE} | {each.container_id: each.required for each in submission.plan.containers}
    profile = environment.profile
    name = submission.loaded.definition.name
    specs = tuple(
        ContainerSpec(
            topology=name,
            topology_id=submission.topology_id,
            container_id=container_id,
            attempt=1,
            run_dir=str(submission.run_dir),
            log_dir=str(submission.log_dir),
            package_uri=uri,
            statemgr=profile.statemgr,
            uploader=profile.uploader,
            sinks=profile.sinks(str(submission.log_dir)),
            settings=submission.settings.to_keys(),
            hooks=submission.hooks,
            serializers=submission.serializers,
            required=resource,
        )
        for container_id, resource in required.items()
    )
    return Job(name, submission.topology_id, specs, attached=submission.attached)
