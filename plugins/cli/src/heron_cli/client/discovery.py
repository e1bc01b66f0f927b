"""What there is of a topology: what its nodes say, what its scheduler knows, and what follows from both.

A run is *over* when nothing of it can be running any more. That can be told only where its scheduler can be asked: by
the profile that submitted it, and on the host that did, unless the scheduler is one that any host can ask.
"""

from __future__ import annotations

import enum
import re
import socket
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import TypeVar

from heron.errors import StateError, StateUnavailableError, UsageError
from heron.planner.physical_plan import ENDED_STATES, TopologyState
from heron.spi.scheduler import ContainerStatus, JobStatus, SchedulerState
from heron.spi.statemgr import NodeKind, StateManager
from heron.state_nodes.document import node_name
from heron.state_nodes.execution_state import ExecutionState, decode_execution_state
from heron.state_nodes.plans import decode_packing_plan, decode_physical_plan
from heron.state_nodes.report import LastReport, decode_report
from heron.state_nodes.scheduler_location import decode_scheduler_location
from heron.state_nodes.tmanager_location import decode_tmanager_location
from heron_cli.client.environment import Environment

__all__ = [
    "ENDED",
    "Facts",
    "RunState",
    "check_name",
    "classify",
    "is_name",
    "is_ours",
    "is_over",
    "read_report",
    "read_run",
    "survey",
    "topologies",
]

_NAME = re.compile(r"[A-Za-z0-9_-]{1,200}")  # the state manager's rule

T = TypeVar("T")


class RunState(enum.Enum):
    """How a run is; the values are what people read."""

    STARTING = "starting"
    RUNNING = "running"
    PAUSED = "paused"
    FINISHED = "finished"
    FAILED = "failed"
    KILLED = "killed"
    CHANGING = "changing"
    """A command is at work on it: submits it, or ends it."""
    LOST = "lost"
    """Nothing of it runs, and it left no report."""
    ELSEWHERE = "elsewhere"
    """Only another host or profile can tell."""
    GARBLED = "garbled"
    """Its state cannot be read."""


ENDED = frozenset(RunState(state.value) for state in ENDED_STATES)


_ALIVE = {None: RunState.STARTING, TopologyState.PAUSED: RunState.PAUSED}
"""How one with live processes is, by its physical plan; any other plan is of one that runs."""


@dataclass(frozen=True, slots=True)
class Facts:
    """What was found under one name.

    `spare` is the copy of the execution state that stands in for one that cannot be read. `error` says which node could
    not be read, `plan` is the state that the physical plan gives, `led` whether a
    topology manager lives, `locked` whether another command is at work; `troubles` are containers with an error.
    `other` is the scheduler's job of that name if this state manager does not know its run: `job` is ABSENT then.
    """

    topology: str
    run: ExecutionState | None = None
    report: LastReport | None = None
    error: str = ""
    plan: TopologyState | None = None
    led: bool = False
    locked: bool = False
    ours: bool = True
    job: SchedulerState = SchedulerState.ABSENT
    troubles: tuple[ContainerStatus, ...] = ()
    containers: int = 0
    tasks: int = 0
    other: JobStatus | None = None
    spare: ExecutionState | None = None

    @property
    def known(self) -> ExecutionState | None:
        """What has to be removed with it, as far as anything says so."""
        return self.run or self.spare


def classify(facts: Facts) -> RunState | None:
    """The state that follows; None when there is nothing of that name."""
    if facts.run is None:
        if facts.locked:
            return RunState.CHANGING
        return RunState.GARBLED if facts.error else _outcome(facts.report)
    if facts.report and facts.report.status.topology_id == facts.run.topology_id:
        return _outcome(facts.report)
    if facts.led or (facts.ours and facts.job is SchedulerState.RUNNING):
        return _ALIVE.get(facts.plan, RunState.RUNNING)
    if facts.locked:
        return RunState.CHANGING
    return RunState.LOST if facts.ours else RunState.ELSEWHERE


def is_over(facts: Facts) -> bool:
    """Whether nothing of it runs, nobody is at work on it, and there is something to tidy up."""
    idle = not facts.led and not facts.locked and facts.job is not SchedulerState.RUNNING
    return idle and facts.ours and facts.run is not None and not facts.error


def is_ours(environment: Environment, run: ExecutionState) -> bool:
    """Whether this environment's scheduler is the one that runs it, and can be asked from here."""
    anywhere = "shared" in environment.scheduler.capabilities
    return run.profile == environment.profile.name and (anywhere or run.host == socket.gethostname())


def is_name(text: str) -> bool:
    """Whether a topology can be called so."""
    return _NAME.fullmatch(text) is not None


def check_name(topology: str) -> None:
    """Refuses what cannot be the name of a topology.

    Raises:
        UsageError: when it has other characters, or is too long.
    """
    if not is_name(topology):
        msg = f"{topology[:220]!r} is not a topology name: use 1 to 200 of the characters A-Z a-z 0-9 _ -"
        raise UsageError(msg)


def topologies(statemgr: StateManager) -> tuple[str, ...]:
    """The names of all topologies that are there, have left something, or that a command is at work on.

    Raises:
        StateError: when the state manager does not answer.
    """
    kinds = (NodeKind.EXECUTION_STATE, NodeKind.TOPOLOGY, NodeKind.REPORT, NodeKind.LOCK)
    return tuple(sorted({name for kind in kinds for name in statemgr.list(kind)}))


def read_run(statemgr: StateManager, topology: str) -> ExecutionState | None:
    """Who submitted it; None when there is no such node.

    Raises:
        StateError: when the node cannot be read; names it.
    """
    node = statemgr.get(NodeKind.EXECUTION_STATE, topology)
    return decode_execution_state(node.value, topology) if node else None


def read_report(statemgr: StateManager, topology: str) -> LastReport | None:
    """The last report of that name; None when there is none. Raises as `read_run` does."""
    node = statemgr.get(NodeKind.REPORT, topology)
    return decode_report(node.value, topology) if node else None


def survey(environment: Environment, topology: str, *, locked: bool | None = None) -> Facts:
    """Looks at one topology; `locked` is given by who holds its lock.

    Raises:
        StateUnavailableError: when the state manager does not answer.
        SchedulerError: when the scheduler should know, and does not answer.
    """
    statemgr = environment.statemgr
    errors: list[str] = []
    run = _readable(errors, lambda: read_run(statemgr, topology))
    if run is None and not errors:
        _readable(errors, lambda: _no_orphan(statemgr, topology))
    spare = None if run or not errors else _spare(statemgr, topology)
    known_run = run or spare
    report = _readable(errors, lambda: read_report(statemgr, topology))
    counts = _readable(errors, lambda: _counts(statemgr, topology))
    if counts is None:
        counts = (report.containers, report.tasks) if report else (0, 0)
    plan = _readable(errors, lambda: _plan_state(statemgr, topology, run))
    leader = _readable(errors, lambda: statemgr.get(NodeKind.TMANAGER_LOCATION, topology))
    if locked is None:
        locked = bool(_readable(errors, lambda: statemgr.get(NodeKind.LOCK, topology) is not None))
    ours = known_run is None or is_ours(environment, known_run)
    found = environment.scheduler.status(topology) if ours else JobStatus(SchedulerState.ABSENT)
    known = not found.topology_id or found.topology_id in _run_ids(statemgr, topology, known_run)
    job = found if known else JobStatus(SchedulerState.ABSENT)
    return Facts(
        topology,
        run,
        report,
        errors[0] if errors else "",
        plan,
        leader is not None,
        locked,
        ours,
        job.state,
        tuple(each for each in job.containers if each.last_error),
        *counts,
        other=None if known else found,
        spare=spare,
    )


def _outcome(report: LastReport | None) -> RunState | None:
    if report is None:
        return None
    try:
        return RunState(report.status.state)
    except ValueError:  # of another version of heron-core
        return RunState.GARBLED


def _readable(errors: list[str], read: Callable[[], T]) -> T | None:
    try:
        return read()
    except StateUnavailableError:
        raise
    except StateError as error:
        errors.append(str(error))
        return None


def _spare(statemgr: StateManager, topology: str) -> ExecutionState | None:
    with suppress(StateError):
        if node := statemgr.get(NodeKind.SCHEDULER_LOCATION, topology):
            return decode_scheduler_location(node.value, topology).run
    return None


def _no_orphan(statemgr: StateManager, topology: str) -> None:
    if statemgr.get(NodeKind.TOPOLOGY, topology) is not None:
        msg = (
            f"node executionstate/{topology}: is missing, although there are other nodes of topology {topology!r}; "
            f"`heron kill {topology}` removes them"
        )
        raise StateError(msg)


def _counts(statemgr: StateManager, topology: str) -> tuple[int, int] | None:
    """Containers, with container 0 (which is in no plan), and tasks."""
    node = statemgr.get(NodeKind.PACKING_PLAN, topology)
    if node is None:
        return None
    plan = decode_packing_plan(node.value, node_name(NodeKind.PACKING_PLAN, topology))
    return 1 + len(plan.containers), sum(len(each.instances) for each in plan.containers)


def _run_ids(statemgr: StateManager, topology: str, run: ExecutionState | None) -> frozenset[str]:
    """The runs whose job is this topology's; where its execution state is lost other nodes still tell."""
    if run:
        return frozenset({run.topology_id})
    found = set()
    with suppress(StateError):
        if node := statemgr.get(NodeKind.PHYSICAL_PLAN, topology):
            found.add(decode_physical_plan(node.value, node_name(NodeKind.PHYSICAL_PLAN, topology)).topology_id)
    with suppress(StateError):
        if node := statemgr.get(NodeKind.TMANAGER_LOCATION, topology):
            found.add(decode_tmanager_location(node.value, topology).topology_id)
    return frozenset(found)


def _plan_state(statemgr: StateManager, topology: str, run: ExecutionState | None) -> TopologyState | None:
    node = statemgr.get(NodeKind.PHYSICAL_PLAN, topology)
    if node is None or run is None:
        return None
    plan = decode_physical_plan(node.value, node_name(NodeKind.PHYSICAL_PLAN, topology))
    return plan.state if plan.version and plan.topology_id == run.topology_id else None
