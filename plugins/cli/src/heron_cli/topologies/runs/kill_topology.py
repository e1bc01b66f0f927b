"""Ends a topology: asks it to stop, ends its processes when it does not stop, and removes the run."""

from __future__ import annotations

import enum
from dataclasses import dataclass

from heron.clock import wait_for
from heron.errors import HeronError, UsageError, known, nearest
from heron.planner.physical_plan import TopologyState
from heron.spi.scheduler import SchedulerState
from heron.spi.statemgr import NodeKind
from heron.state_nodes.execution_state import ExecutionState
from heron.state_nodes.report import encode_report
from heron_cli.topologies.environment import Environment
from heron_cli.topologies.progress import Progress
from heron_cli.topologies.run_nodes import check_name, read_report, topologies
from heron_cli.topologies.running.remote_topology import RemoteTopology
from heron_cli.topologies.runs.cleanup import acquire_lock, another_job, final_report, not_known_here, remove_run
from heron_cli.topologies.runs.discovery import Facts, RunState, classify, discover

__all__ = ["KILL_STEPS", "HowKilled", "KillResult", "kill_topology"]

KILL_STEPS = 3
"""The number of steps that `kill_topology` reports."""

_LOCK_WAIT_S = 10.0  # a submission that is in progress holds it for seconds
_ANSWER_S = 3.0  # a topology manager answers in milliseconds, and is restarted within two seconds
_GONE_S = 2.0
_POLL_S = 0.05


class HowKilled(enum.Enum):
    """How a topology was ended; the values are part of the JSON of ``heron kill``."""

    ASKED = "asked"
    """It stopped by itself, with the last output of its tasks."""
    FORCED = "forced"
    """Its scheduler ended its processes."""
    OVER = "over"
    """It was over already; its remains were removed."""


@dataclass(frozen=True, slots=True)
class KillResult:
    """How a topology was ended; `why` is the reason for force, and `left` lists the parts that could not be removed.

    `state` is that of the last report: a topology may have finished or failed while it was being killed.
    """

    topology: str
    run: ExecutionState | None
    manner: HowKilled
    why: str = ""
    left: tuple[str, ...] = ()
    state: str = TopologyState.KILLED.value


def kill_topology(
    environment: Environment, topology: str, timeout_s: float, progress: Progress, *, force: bool = False
) -> KillResult:
    """End the topology and remove all of it but its logs and its last report.

    The topology has `timeout_s` to stop by itself. With `force`, another profile or host may have submitted it.

    Raises:
        UsageError: when the topology does not exist, another host or profile runs it, another command is changing it,
            or a newer version of heron-core wrote a node of it; nothing was changed.
        StateUnavailableError: when the state manager does not answer.
    """
    check_name(topology)
    _check(environment, discover(environment, topology), force)
    progress.step("waiting for other commands")
    lock = acquire_lock(environment.statemgr, topology, _LOCK_WAIT_S)
    try:
        facts = discover(environment, topology, locked=False)
        _check(environment, facts, force)  # it may have ended meanwhile
        if facts.known is None:
            reason = facts.error or "there is no execution state"
            progress.note(f"{reason}; its package stays in the store, if it has one")
        other_too = facts.known is None and facts.other is not None  # only with `force`
        running = facts.led or facts.job is SchedulerState.RUNNING or other_too
        progress.step("stopping its processes")
        why = _stop(environment, facts, timeout_s) if running else ""
        manner = HowKilled.OVER if not running else HowKilled.FORCED if why else HowKilled.ASKED
        progress.step("removing package and state")
        try:
            environment.scheduler.kill(topology, _id(facts))  # before the report shows the end
        except HeronError as error:
            return KillResult(topology, facts.known, manner, why, (f"job: {error}",))
        facts = discover(environment, topology, locked=False)  # with its last report
        run = facts.known
        report = final_report(facts, run, killed=_killed_by(manner, why)) if run else None
        if report:
            environment.statemgr.set(NodeKind.REPORT, topology, encode_report(report))
        left = remove_run(environment, topology, run, keep_report=report is not None)
    finally:
        lock.release()
    state = report.status.state if report else TopologyState.KILLED.value
    return KillResult(topology, run, manner, why, left or _still_there(environment, facts), state)


def _check(environment: Environment, facts: Facts, force: bool) -> None:
    name = facts.topology
    if facts.other and facts.known is None and not force:
        remedy = "give the command with the profile that submitted it; if there is none, --force ends it"
        raise UsageError(another_job(environment, name, facts.other, remedy))
    if facts.newer and not force:
        raise UsageError(facts.newer)
    exists = facts.other or facts.run or facts.error or facts.led or facts.job is not SchedulerState.ABSENT
    if not exists:
        names = topologies(environment.statemgr)
        state = classify(facts)
        if state and state is not RunState.CHANGING:
            msg = f"topology {name!r} is {state.value} already; only its logs and its last report are left"
        else:
            where = environment.profile.name
            msg = f"no topology {name!r} in profile {where!r}{nearest(name, names)}; there are: {known(names)}"
        raise UsageError(msg)
    if facts.known and not facts.ours and not force:
        raise UsageError(not_known_here(facts.known, environment.profile.name))


def _stop(environment: Environment, facts: Facts, timeout_s: float) -> str:
    """Ask the topology manager to stop the topology; return why that failed, or ""."""
    if not facts.led:
        return "it has no topology manager yet, or any more"
    try:
        _ask(environment, facts)
    except HeronError as error:
        if not _has_stopped(environment, facts):
            return str(error)  # else it ended before its answer arrived
    if wait_for(lambda: not _runs(environment, facts, idle_is_over=True), timeout_s, _POLL_S):
        return ""
    return f"it did not stop within {timeout_s:g} s"


def _ask(environment: Environment, facts: Facts) -> None:
    with RemoteTopology(environment.statemgr, environment.scheduler, facts.topology, _ANSWER_S) as remote:
        remote.change_state("killed")


def _has_stopped(environment: Environment, facts: Facts) -> bool:
    """Return whether it has written its last report, or none of its processes runs any more."""
    try:
        report = read_report(environment.statemgr, facts.topology)
    except HeronError:
        report = None
    return (report is not None and report.status.topology_id == _id(facts)) or not _runs(environment, facts)


def _runs(environment: Environment, facts: Facts, *, idle_is_over: bool = False) -> bool:
    """Return whether it has a job or a topology manager.

    With `idle_is_over`, a job whose containers are all down does not count: a container that could not begin was never
    asked to stop.
    """
    try:
        job = environment.scheduler.status(facts.topology).of(_id(facts))
        idle = idle_is_over and job.containers and not any(each.running for each in job.containers)
        if job.state is SchedulerState.RUNNING and not idle:
            return True
        return environment.statemgr.get(NodeKind.TMANAGER_LOCATION, facts.topology) is not None
    except HeronError:
        return True  # the caller asks again


def _still_there(environment: Environment, facts: Facts) -> tuple[str, ...]:
    """Check again whether the scheduler and the state manager have really removed it."""
    if wait_for(lambda: not _runs(environment, facts), _GONE_S, _POLL_S):
        return ()
    return (f"job or topology manager: topology {facts.topology!r} still has one; give the command again",)


def _id(facts: Facts) -> str:
    """Return the id of the run to end; "" when no node names it."""
    return facts.known.topology_id if facts.known else ""


def _killed_by(manner: HowKilled, why: str) -> str:
    return "" if manner is HowKilled.OVER else f"killed by a command{f', by force: {why}' if why else ''}"
