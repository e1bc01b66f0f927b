"""Brings a topology to its scheduler step by step; what was done before a failure is undone, in reverse."""

from __future__ import annotations

import getpass
import logging
import secrets
import socket
import sys
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import cast

from heron.clock import wall_s
from heron.errors import HeronError, StateConflictError, UsageError
from heron.ipc.keys import encode_keys, new_keys
from heron.kernel.loading import load_object
from heron.kernel.manifest import PackageManifest
from heron.kernel.package import pack
from heron.kernel.settings import EngineSettings
from heron.planner.codec import encode
from heron.planner.packing_plan import PackingPlan
from heron.spi.driver import DriverRef
from heron.spi.scheduler import ContainerSpec, Job
from heron.spi.statemgr import MUST_NOT_EXIST, Hold, NodeKind
from heron.spi.uploader import Uploader
from heron.submit.environment import Environment, without_secrets
from heron.submit.execution_state import ExecutionState, encode_execution_state
from heron.submit.leftovers import make_room
from heron.submit.loaded import LoadedTopology

__all__ = ["Submission", "manifest_of", "new_topology_id", "submit"]

_log = logging.getLogger(__name__)

_UploadBar = Callable[[Uploader, int], AbstractContextManager[None]]

_WATCHED_BYTES = 4 * 1024 * 1024  # a second on a line of 32 Mbit/s


@dataclass(frozen=True, slots=True)
class Submission:
    """What is to run, and where on this machine or another; `run_dir` and `log_dir` exist already."""

    loaded: LoadedTopology
    plan: PackingPlan
    topology_id: str
    run_dir: Path
    log_dir: Path
    settings: EngineSettings
    hooks: tuple[str, ...] = ()
    serializers: tuple[DriverRef, ...] = ()
    attached: bool = False


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
    )


def submit(environment: Environment, submission: Submission, note: Callable[[str], None]) -> ExecutionState:
    """Packs, uploads, writes the state and schedules; `note` is told of what a dead run had left behind.

    Raises:
        UsageError: when a topology of that name is running or another command is at work on it.
        HeronError: when a step fails; everything before it is undone.
    """
    name = submission.loaded.definition.name
    with ExitStack() as always, ExitStack() as undo:
        always.callback(_lock(environment, name, submission.topology_id).release)
        if left := make_room(environment, name):
            note(left)
        uri = _upload(environment, submission)
        undo.callback(_attempt, "package", partial(environment.uploader.undo, uri))
        state = _execution_state(environment, submission, uri)
        for kind, value in (
            (NodeKind.TOPOLOGY, encode(submission.loaded.definition)),
            (NodeKind.KEYS, encode_keys(new_keys())),
            (NodeKind.PACKING_PLAN, encode(submission.plan)),
            (NodeKind.EXECUTION_STATE, encode_execution_state(state)),
        ):
            environment.statemgr.set(kind, name, value, expected=MUST_NOT_EXIST)
            undo.callback(_attempt, kind.name, partial(environment.statemgr.delete, kind, name))
        with without_secrets(environment.profile):
            environment.scheduler.schedule(_job(environment, submission, uri))
        undo.pop_all()
    return state


def _lock(environment: Environment, name: str, topology_id: str) -> Hold:
    try:
        return environment.statemgr.hold(NodeKind.LOCK, name, topology_id.encode())
    except StateConflictError as error:
        msg = f"topology {name!r}: another command is at work on it; wait for it and try again"
        raise UsageError(msg) from error


def _upload(environment: Environment, submission: Submission) -> str:
    loaded = submission.loaded
    package = submission.run_dir / f"{loaded.definition.name}.tar.gz"
    try:
        pack(loaded.root, loaded.files, manifest_of(loaded), package)
        with _shown(environment.uploader, package.stat().st_size):
            return environment.uploader.upload(package, loaded.definition.name)
    finally:
        package.unlink(missing_ok=True)


def _shown(uploader: Uploader, size_bytes: int) -> AbstractContextManager[None]:
    """A bar on the terminal, if there is one and the upload may take long enough to be watched."""
    if size_bytes < _WATCHED_BYTES or not sys.stderr.isatty():
        return nullcontext()
    upload_bar = cast("_UploadBar", load_object("heron.submit.upload_bar:upload_bar"))
    return upload_bar(uploader, size_bytes)


def _execution_state(environment: Environment, submission: Submission, uri: str) -> ExecutionState:
    return ExecutionState(
        topology=submission.loaded.definition.name,
        topology_id=submission.topology_id,
        submitted_at_s=wall_s(),
        user=_user(),
        host=socket.gethostname(),
        profile=environment.profile.name,
        package_uri=uri,
        run_dir=str(submission.run_dir),
        log_dir=str(submission.log_dir),
        attached=submission.attached,
    )


def _job(environment: Environment, submission: Submission, uri: str) -> Job:
    ids: Sequence[int] = (0, *(each.container_id for each in submission.plan.containers))
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
        )
        for container_id in ids
    )
    return Job(name, submission.topology_id, specs, attached=submission.attached)


def _attempt(what: str, step: Callable[[], None]) -> None:
    """Undoes one step; that this fails too must not hide why it is undone."""
    try:
        step()
    except HeronError as error:
        _log.warning("%s could not be undone: %s", what, error)


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a container whose user has no name
        return "unknown"
