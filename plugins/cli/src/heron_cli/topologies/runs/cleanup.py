"""Removes runs: a whole run on demand, and the remains of runs that ended.

A run consists of a job, a package, a run directory and nodes. They are removed in the reverse of the order in which a
submission makes them. The node EXECUTION_STATE and then the report go last, and only when nothing else is left: while
the node exists, the next command can continue the work of a command that was killed.
"""

from __future__ import annotations

import logging
import shutil
import socket
import threading
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from heron.clock import monotonic_s, wall_s
from heron.errors import HeronError, StateConflictError, StateError, StateUnavailableError, UsageError
from heron.ipc.documents.status import TopologyStatus
from heron.planner.physical_plan import TopologyState
from heron.spi.scheduler import JobStatus, SchedulerState
from heron.spi.statemgr import Hold, NodeKind, StateManager
from heron.spi.uploader import Uploader
from heron.state_nodes.execution_state import ExecutionState, kill_command
from heron.state_nodes.report import LastReport, encode_report
from heron_cli.topologies.environment import Environment
from heron_cli.topologies.run_nodes import read_report, read_run, topologies
from heron_cli.topologies.runs.discovery import ENDED, Facts, RunState, classify, discover, is_over
from heron_cli.topologies.runs.run_folders import is_run_dir

__all__ = [
    "acquire_lock",
    "another_job",
    "clean_up",
    "end_run",
    "final_report",
    "free_name",
    "logs_in_use",
    "not_known_here",
    "package_file",
    "remove_run",
]

_log = logging.getLogger(__name__)

_LOCK_WAIT_S = 2.0  # a command that finds the topology running releases its lock within milliseconds
_LOCK_RETRY_S = 0.02

_NODES = (
    NodeKind.TMANAGER_LOCATION,  # its holder removes it, unless it is damaged
    NodeKind.PHYSICAL_PLAN,
    NodeKind.CHECKPOINTS,
    NodeKind.HEALTH,
    NodeKind.HOSTS,
    NodeKind.PACKING_PLAN,
    NodeKind.KEYS,
    NodeKind.TOPOLOGY,
    NodeKind.SCHEDULER_LOCATION,
)


def free_name(environment: Environment, topology: str, keep: str = "") -> str:
    """Remove the remains of an ended run of that name; return a note, or "" when the run had ended in order.

    The package with the URI `keep` stays. The caller holds the topology's lock.

    Raises:
        UsageError: when a topology of that name is running, or may be running under another host or profile, or a
            newer version of heron-core wrote a node of it.
        StateError: when something of the last run cannot be removed; gives the reason.
    """
    facts = discover(environment, topology, locked=False)
    if facts.newer:
        raise UsageError(facts.newer)
    state = classify(facts)
    leaving = state in ENDED and facts.run is not None and not facts.run.attached  # its name is free at once
    if not leaving and (facts.led or facts.job is SchedulerState.RUNNING):
        raise UsageError(_running(topology, facts))
    if facts.other and facts.other.state is SchedulerState.RUNNING:
        remedy = "give one of the two another name, or this profile its own scheduler.root"
        raise UsageError(another_job(environment, topology, facts.other, remedy))
    if state is RunState.ELSEWHERE and facts.run:
        raise UsageError(not_known_here(facts.run, environment.profile.name))
    if facts.run is None and not facts.error:
        environment.statemgr.delete(NodeKind.REPORT, topology)
        return ""
    if left := remove_run(environment, topology, facts.known, keep_report=False, keep=keep):
        msg = f"what is left of the last run of topology {topology!r} cannot be removed: {'; '.join(left)}"
        raise StateError(msg)
    if state not in {RunState.LOST, RunState.GARBLED}:
        return ""
    which = f" of run {facts.known.topology_id}" if facts.known else ""
    return f"removed what was left of topology {topology!r}{which}, which had ended without cleaning up"


def clean_up(environment: Environment, topology: str) -> str:
    """Clean up after an ended run and keep its report; return a note when the run had not ended in order.

    It does not touch a topology that is running, that another command is changing, or whose state cannot be read.
    """
    try:
        hold = environment.statemgr.hold(NodeKind.LOCK, topology, b"clean_up")
    except StateConflictError:
        return ""
    try:
        facts = discover(environment, topology, locked=False)
        if facts.run is None and facts.report and not facts.error and facts.report.expired(wall_s()):
            environment.statemgr.delete(NodeKind.REPORT, topology)
        if facts.run is None or not is_over(facts):
            return ""
        report = final_report(facts, facts.run)
        if report:
            environment.statemgr.set(NodeKind.REPORT, topology, encode_report(report))
        left = remove_run(environment, topology, facts.run, keep_report=report is not None)
    finally:
        hold.release()
    if left:
        return f"topology {topology!r} is over, but cannot be cleaned up: {'; '.join(left)}"
    if classify(facts) is not RunState.LOST:
        return ""
    why = report.status.error if report else "it ended before it had a plan, or its submission was interrupted"
    return f"removed what was left of topology {topology!r}, run {facts.run.topology_id}: {why}"


def end_run(environment: Environment, run: ExecutionState) -> None:
    """End and remove this run, unless another command has done so already and another run has the name."""
    hold = None
    try:
        hold = acquire_lock(environment.statemgr, run.topology, _LOCK_WAIT_S)
    except HeronError as error:
        _log.warning("topology %s is ended without its lock: %s", run.topology, error)
    try:
        try:
            present = read_run(environment.statemgr, run.topology)
        except StateError as error:
            _log.warning("%s", error)
            present = None
        if present is None or present.topology_id == run.topology_id:
            for left in remove_run(environment, run.topology, present or run, keep_report=False):
                _log.warning("topology %s: not removed: %s; see `heron doctor`", run.topology, left)
    finally:
        if hold:
            hold.release()


def final_report(facts: Facts, run: ExecutionState, killed: str = "") -> LastReport | None:
    """Return the report to keep of a run; None when the run never began.

    `killed` is the reason in the report of a run that was killed and has not written a report.
    """
    present = facts.report
    if present and present.status.topology_id == run.topology_id:
        status = present.status
    elif killed or run.attached:
        state, why = TopologyState.KILLED, killed or "the command that ran it was killed"
        status = _made_up(run, state, why)
    elif facts.plan is None and not facts.troubles:
        return None  # no container was started
    else:
        status = _made_up(run, TopologyState.FAILED, _why(facts))
    return LastReport(status, run, facts.containers, facts.tasks)


def acquire_lock(statemgr: StateManager, topology: str, timeout_s: float) -> Hold:
    """Take the topology's lock, and wait for it up to `timeout_s`.

    Raises:
        UsageError: when another command keeps it for longer.
        StateError: as `StateManager.hold` does.
    """
    deadline_s = monotonic_s() + timeout_s
    pause = threading.Event()
    while True:
        try:
            return statemgr.hold(NodeKind.LOCK, topology, b"command")
        except StateConflictError as error:
            if monotonic_s() > deadline_s:
                msg = f"topology {topology!r}: another command is at work on it; wait for it and try again"
                raise UsageError(msg) from error
            pause.wait(_LOCK_RETRY_S)


def logs_in_use(statemgr: StateManager) -> frozenset[str]:
    """Return the log folders of the runs that exist or are listed as ended; unreadable nodes are skipped.

    Raises:
        StateUnavailableError: when the state manager does not answer.
    """
    found = set()
    for name in topologies(statemgr):
        try:
            if run := read_run(statemgr, name):
                found.add(run.log_dir)
            if report := read_report(statemgr, name):
                found.add(report.run.log_dir if report.run else "")
        except StateUnavailableError:
            raise
        except StateError as error:
            _log.debug("%s", error)
    return frozenset(found)


def not_known_here(run: ExecutionState, profile: str) -> str:
    """Return the message that a command with `profile` cannot read the state of a run, with the remedy."""
    if run.host == socket.gethostname():
        where, remedy = f"profile {run.profile!r}", f"give the command with `--profile {run.profile}`"
    else:
        where, remedy = f"profile {run.profile!r} on host {run.host!r}", "give the command there"
    return (
        f"topology {run.topology!r} was submitted with {where}, and its state can only be read there; {remedy}, or "
        f"remove it with `{kill_command(run.topology, profile)} --force`"
    )


def another_job(environment: Environment, topology: str, job: JobStatus, remedy: str) -> str:
    """Return the message that the scheduler's job of that name belongs to another state manager's run."""
    return (
        f"the scheduler's job {topology!r} is of run {job.topology_id!r}, which the state manager of profile "
        f"{environment.profile.name!r} does not know: another state manager does, or it was removed there; {remedy}"
    )


def remove_run(
    environment: Environment, topology: str, run: ExecutionState | None, *, keep_report: bool, keep: str = ""
) -> tuple[str, ...]:
    """Remove the job, the package, the run directory and every node that exist; return what could not be removed.

    When the job cannot be ended, nothing else is removed, because its processes need it. A job of that name that
    belongs to a run of another state manager goes on. The package with the URI `keep` stays. The caller holds the
    topology's lock.
    """
    left: list[str] = []
    run_id = run.topology_id if run else ""
    if not _attempt(left, "job", partial(environment.scheduler.kill, topology, run_id)):
        return tuple(left)
    if run:
        _attempt(left, "package", partial(_remove_package, environment.uploader, run, keep))
        if is_run_dir(Path(run.run_dir)):
            shutil.rmtree(run.run_dir, ignore_errors=True)
    delete = environment.statemgr.delete
    for kind in _NODES:
        _attempt(left, f"node {kind.value}/{topology}", partial(delete, kind, topology))
    if not left:
        for kind in (NodeKind.EXECUTION_STATE, *(() if keep_report else (NodeKind.REPORT,))):
            _attempt(left, f"node {kind.value}/{topology}", partial(delete, kind, topology))
    return tuple(left)


def package_file(run: ExecutionState) -> Path:
    """Return where a submission keeps the package until the state names the place of the upload."""
    return Path(run.run_dir) / f"{run.topology}.tar.gz"


def _remove_package(uploader: Uploader, run: ExecutionState, keep: str) -> None:
    uri = run.package_uri
    if not uri and is_run_dir(Path(run.run_dir)) and package_file(run).is_file():
        # Killed between the upload and the note about it: an upload of the same content has the same URI.
        uri = uploader.upload(package_file(run), run.topology)
    for each in dict.fromkeys((uri, *run.more_packages)):
        if each and each != keep:
            uploader.undo(each)


def _attempt(left: list[str], what: str, step: Callable[[], None]) -> bool:
    try:
        step()
    except HeronError as error:
        left.append(f"{what}: {error}")
        return False
    return True


def _why(facts: Facts) -> str:
    """Return the errors of the containers, or the one error where all have the same."""
    if len({each.last_error for each in facts.troubles}) == 1:
        return facts.troubles[0].last_error
    reasons = [f"container {each.container_id}: {each.last_error}" for each in facts.troubles]
    return "; ".join(reasons) or "its processes ended without a report"


def _made_up(run: ExecutionState, state: TopologyState, why: str) -> TopologyStatus:
    return TopologyStatus(
        run.topology, run.topology_id, state.value, run.submitted_at_s, error=why, ended_at_s=wall_s()
    )


def _running(topology: str, facts: Facts) -> str:
    who = ""
    if run := facts.known:
        since = datetime.fromtimestamp(run.submitted_at_s, UTC).isoformat(sep=" ", timespec="seconds")
        who = f" (id {run.topology_id}, since {since}, by {run.user} on {run.host})"
    command = facts.known.kill_command if facts.known else f"heron kill {topology}"
    remedy = f"stop it, or give this one another name (`{command}` stops it)"
    damage = f"; its state is damaged: {facts.error}" if facts.error else ""
    return f"topology {topology!r} is already running{who}; {remedy}{damage}"
