"""Runs that are over and have not been tidied up: removed by the next command, with a report for a day."""

from __future__ import annotations

import logging
import socket
import threading
from datetime import UTC, datetime

from heron.clock import monotonic_s, wall_s
from heron.errors import HeronError, StateConflictError, StateError, StateUnavailableError, UsageError
from heron.ipc.status import TopologyStatus
from heron.planner.physical_plan import TopologyState
from heron.spi.scheduler import JobStatus, SchedulerState
from heron.spi.statemgr import Hold, NodeKind, StateManager
from heron.state_nodes.execution_state import ExecutionState, kill_command
from heron.state_nodes.report import LastReport, encode_report
from heron_cli.client.discovery import (
    ENDED,
    Facts,
    RunState,
    classify,
    is_over,
    read_report,
    read_run,
    survey,
    topologies,
)
from heron_cli.client.environment import Environment
from heron_cli.client.removal import remove_run

__all__ = ["another_job", "elsewhere", "end_run", "last_report", "lock_soon", "logs_in_use", "make_room", "settle"]

_log = logging.getLogger(__name__)

_LOCK_WAIT_S = 2.0  # a command that finds the topology running gives its lock back within milliseconds
_LOCK_RETRY_S = 0.02


def make_room(environment: Environment, topology: str) -> str:
    """Removes what a run that is over left behind; returns a note about it, or "" when it had ended in order.

    The caller holds the topology's lock.

    Raises:
        UsageError: when a topology of that name is running, or only another host or profile can tell.
        StateError: when what is left cannot be removed; says why.
    """
    facts = survey(environment, topology, locked=False)
    state = classify(facts)
    leaving = state in ENDED and facts.run is not None and not facts.run.attached  # its name is free at once
    if not leaving and (facts.led or facts.job is SchedulerState.RUNNING):
        raise UsageError(_running(topology, facts))
    if facts.other and facts.other.state is SchedulerState.RUNNING:
        remedy = "give one of the two another name, or this profile a scheduler.root of its own"
        raise UsageError(another_job(environment, topology, facts.other, remedy))
    if state is RunState.ELSEWHERE and facts.run:
        raise UsageError(elsewhere(facts.run, environment.profile.name))
    if facts.run is None and not facts.error:
        environment.statemgr.delete(NodeKind.REPORT, topology)
        return ""
    if left := remove_run(environment, topology, facts.known, keep_report=False):
        msg = f"what is left of the last run of topology {topology!r} cannot be removed: {'; '.join(left)}"
        raise StateError(msg)
    if state not in {RunState.LOST, RunState.GARBLED}:
        return ""
    who = f" of run {facts.known.topology_id}" if facts.known else ""
    return f"removed what was left of topology {topology!r}{who}, which had ended without tidying up"


def settle(environment: Environment, topology: str) -> str:
    """Tidies up after a run that is over, and keeps its report; returns a note when that was not to be expected.

    Leaves alone what runs, what another command is at work on, and what cannot be read.
    """
    try:
        hold = environment.statemgr.hold(NodeKind.LOCK, topology, b"settle")
    except StateConflictError:
        return ""
    try:
        facts = survey(environment, topology, locked=False)
        if facts.run is None and facts.report and not facts.error and facts.report.expired(wall_s()):
            environment.statemgr.delete(NodeKind.REPORT, topology)
        if facts.run is None or not is_over(facts):
            return ""
        report = last_report(facts, facts.run)
        if report:
            environment.statemgr.set(NodeKind.REPORT, topology, encode_report(report))
        left = remove_run(environment, topology, facts.run, keep_report=report is not None)
    finally:
        hold.release()
    if left:
        return f"topology {topology!r} is over, but cannot be tidied up: {'; '.join(left)}"
    if classify(facts) is not RunState.LOST:
        return ""
    why = report.status.error if report else "it was ended before it had a plan, or its submission was cut off"
    return f"removed what was left of topology {topology!r}, run {facts.run.topology_id}: {why}"


def end_run(environment: Environment, run: ExecutionState) -> None:
    """Ends and removes this run, unless another command has already done so and gave the name to another run."""
    hold = None
    try:
        hold = lock_soon(environment.statemgr, run.topology, _LOCK_WAIT_S)
    except HeronError as error:
        _log.warning("topology %s is ended without its lock: %s", run.topology, error)
    try:
        try:
            present = read_run(environment.statemgr, run.topology)
        except StateError as error:
            _log.warning("%s", error)
            present = None
        if present is None or present.topology_id == run.topology_id:
            for left in remove_run(environment, run.topology, run, keep_report=False):
                _log.warning("topology %s: left behind: %s; see `heron doctor`", run.topology, left)
    finally:
        if hold:
            hold.release()


def last_report(facts: Facts, run: ExecutionState, killed: str = "") -> LastReport | None:
    """What is kept of a run; None when it never began. `killed` says who ended it, if it has not said so itself."""
    present = facts.report
    if present and present.status.topology_id == run.topology_id:
        status = present.status
    elif killed or run.attached:
        state, why = TopologyState.KILLED, killed or "the command that ran it was killed"
        status = _made_up(run, state, why)
    elif facts.plan is None and not facts.troubles:
        return None  # not one of its containers has been started
    else:
        status = _made_up(run, TopologyState.FAILED, _why(facts))
    return LastReport(status, run, facts.containers, facts.tasks)


def lock_soon(statemgr: StateManager, topology: str, patience_s: float) -> Hold:
    """The topology's lock, waited for.

    Raises:
        UsageError: when another command keeps it for longer.
        StateError: as `StateManager.hold` does.
    """
    deadline_s = monotonic_s() + patience_s
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
    """The log folders of runs that are there, or listed as over; a node that cannot be read has none.

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


def elsewhere(run: ExecutionState, profile: str) -> str:
    """Why a command that was given with `profile` cannot know about a run, and what to do."""
    if run.host == socket.gethostname():
        where, remedy = f"profile {run.profile!r}", f"give the command with `--profile {run.profile}`"
    else:
        where, remedy = f"profile {run.profile!r} on host {run.host!r}", "give the command there"
    return (
        f"topology {run.topology!r} was submitted with {where}, where alone can be told whether it runs; {remedy}, or "
        f"remove it with `{kill_command(run.topology, profile)} --force`"
    )


def another_job(environment: Environment, topology: str, job: JobStatus, remedy: str) -> str:
    """That the scheduler's job of that name is not what this profile's state manager has under it."""
    return (
        f"the scheduler's job {topology!r} is of run {job.topology_id!r}, which the state manager of profile "
        f"{environment.profile.name!r} does not know: another state manager does, or it was removed there; {remedy}"
    )


def _why(facts: Facts) -> str:
    """What its containers say: once where all say the same."""
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
