"""Ends a topology on demand: asks it, ends it by force when it does not answer, and looks that nothing is left."""

from __future__ import annotations

import enum
from dataclasses import dataclass

from heron.clock import wait_for
from heron.driver_kit.redaction import redact_for_command
from heron.errors import HeronError, UsageError, known, nearest
from heron.planner.physical_plan import TopologyState
from heron.spi.scheduler import SchedulerState
from heron.spi.statemgr import NodeKind
from heron.state_nodes.execution_state import ExecutionState
from heron.state_nodes.report import encode_report
from heron_cli.client.cleanup import another_job, elsewhere, last_report, lock_soon
from heron_cli.client.discovery import Facts, RunState, check_name, classify, read_report, survey, topologies
from heron_cli.client.environment import Environment
from heron_cli.client.remote_topology import RemoteTopology
from heron_cli.client.removal import remove_run
from heron_cli.view.progress import Progress

__all__ = ["STEPS", "Ending", "Manner", "kill_topology"]

STEPS = 3
"""How many steps `kill_topology` tells its progress of."""

_LOCK_WAIT_S = 10.0  # a submission that is under way holds it for seconds
_ANSWER_S = 3.0  # a topology manager answers in milliseconds; one that is being restarted is back within two seconds
_GONE_S = 2.0
_LOOK_S = 0.05


class Manner(enum.Enum):
    """How a topology was ended."""

    ASKED = "asked"
    """It has stopped by itself, with the last words of its tasks."""
    FORCED = "forced"
    """Its scheduler has ended its processes."""
    OVER = "over"
    """It was over already; what it had left was removed."""


@dataclass(frozen=True, slots=True)
class Ending:
    """How a topology was ended, why not otherwise, and what of it could not be removed.

    `state` is that of the last report: a topology may have finished or failed while it was being killed.
    """

    topology: str
    run: ExecutionState | None
    manner: Manner
    why: str = ""
    left: tuple[str, ...] = ()
    state: str = TopologyState.KILLED.value


def kill_topology(
    environment: Environment, topology: str, patience_s: float, progress: Progress, *, force: bool = False
) -> Ending:
    """Ends the topology and removes all of it but its logs and its last report.

    It has `patience_s` to stop by itself. With `force` it need not be a run that this profile and host know of.

    Raises:
        UsageError: when there is no such topology, another host or profile runs it, or another command is at work on
            it; nothing was changed.
        StateUnavailableError: when the state manager does not answer.
    """
    check_name(topology)
    _check(environment, survey(environment, topology), force)
    progress.step("waiting for other commands")
    lock = lock_soon(environment.statemgr, topology, _LOCK_WAIT_S)
    try:
        facts = survey(environment, topology, locked=False)
        _check(environment, facts, force)  # it may have ended meanwhile
        if facts.known is None:
            progress.note(
                f"{facts.error or 'there is no execution state'}; its package stays in the store, if it has one"
            )
        other_too = facts.known is None and facts.other is not None  # only `force` comes so far
        running = facts.led or facts.job is SchedulerState.RUNNING or other_too
        progress.step("stopping its processes")
        why = redact_for_command(_stop(environment, facts, patience_s)) if running else ""
        manner = Manner.OVER if not running else Manner.FORCED if why else Manner.ASKED
        progress.step("removing package and state")
        try:
            environment.scheduler.kill(topology, _id(facts))  # before the report says that it is over
        except HeronError as error:
            return Ending(topology, facts.known, manner, why, (f"job: {error}",))
        facts = survey(environment, topology, locked=False)  # with its last report
        run = facts.known
        report = last_report(facts, run, killed=_who(manner, why)) if run else None
        if report:
            environment.statemgr.set(NodeKind.REPORT, topology, encode_report(report))
        left = remove_run(environment, topology, run, keep_report=report is not None)
    finally:
        lock.release()
    state = report.status.state if report else TopologyState.KILLED.value
    return Ending(topology, run, manner, why, left or _still_there(environment, facts), state)


def _check(environment: Environment, facts: Facts, force: bool) -> None:
    name = facts.topology
    if facts.other and facts.known is None and not force:
        remedy = "give the command with the profile that submitted it; if there is none, --force ends it"
        raise UsageError(another_job(environment, name, facts.other, remedy))
    there = facts.other or facts.run or facts.error or facts.led or facts.job is not SchedulerState.ABSENT
    if not there:
        names = topologies(environment.statemgr)
        state = classify(facts)
        if state and state is not RunState.CHANGING:
            msg = f"topology {name!r} is {state.value} already; nothing of it is left but its logs and its last report"
        else:
            where = environment.profile.name
            msg = f"no topology {name!r} in profile {where!r}{nearest(name, names)}; there are: {known(names)}"
        raise UsageError(msg)
    if facts.known and not facts.ours and not force:
        raise UsageError(elsewhere(facts.known, environment.profile.name))


def _stop(environment: Environment, facts: Facts, patience_s: float) -> str:
    """Has the topology manager stop it; says why that did not do, if it did not."""
    if not facts.led:
        return "it has no topology manager yet, or any more"
    try:
        _ask(environment, facts)
    except HeronError as error:
        if not _obeyed(environment, facts):
            return str(error)  # else it went before its answer did
    if wait_for(lambda: not _runs(environment, facts, idle_is_over=True), patience_s, _LOOK_S):
        return ""
    return f"it did not stop within {patience_s:g} s"


def _ask(environment: Environment, facts: Facts) -> None:
    with RemoteTopology(environment.statemgr, environment.scheduler, facts.topology, _ANSWER_S) as remote:
        remote.change_state("killed")


def _obeyed(environment: Environment, facts: Facts) -> bool:
    """Whether it has written its last report, or nothing of it runs any more."""
    try:
        report = read_report(environment.statemgr, facts.topology)
    except HeronError:
        report = None
    return (report is not None and report.status.topology_id == _id(facts)) or not _runs(environment, facts)


def _runs(environment: Environment, facts: Facts, *, idle_is_over: bool = False) -> bool:
    """Whether it has a job or a topology manager; a job whose containers are all down may count as none: one of them
    was never told to stop because it could not begin.
    """
    try:
        job = environment.scheduler.status(facts.topology).of(_id(facts))
        idle = idle_is_over and job.containers and not any(each.running for each in job.containers)
        if job.state is SchedulerState.RUNNING and not idle:
            return True
        return environment.statemgr.get(NodeKind.TMANAGER_LOCATION, facts.topology) is not None
    except HeronError:
        return True  # asked again in a moment


def _still_there(environment: Environment, facts: Facts) -> tuple[str, ...]:
    """Looks again: what a scheduler and a state manager say is gone has to be gone."""
    if wait_for(lambda: not _runs(environment, facts), _GONE_S, _LOOK_S):
        return ()
    return (f"job or topology manager: there is still one of topology {facts.topology!r}; give the command again",)


def _id(facts: Facts) -> str:
    """The run that is ended; "" when nothing says which it is."""
    return facts.known.topology_id if facts.known else ""


def _who(manner: Manner, why: str) -> str:
    return "" if manner is Manner.OVER else f"killed by a command{f', by force: {why}' if why else ''}"
