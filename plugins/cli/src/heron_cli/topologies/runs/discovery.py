"""Finds topologies and their state, from the nodes in the state manager and from the scheduler.

A run is *over* when none of its processes can be running any more. Only its scheduler can determine that: through the
profile that submitted the run and on the same host, unless any host can ask the scheduler.
"""

from __future__ import annotations

import enum
import functools
import socket
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import TypeVar, cast

from heron.errors import NewerFormatError, StateError, StateUnavailableError
from heron.planner.physical_plan import ENDED_STATES, TopologyState
from heron.spi.scheduler import ContainerStatus, JobStatus, SchedulerState
from heron.spi.statemgr import NodeKind, StateManager
from heron.state_nodes.document import node_name
from heron.state_nodes.execution_state import ExecutionState
from heron.state_nodes.plans import decode_packing_plan, decode_physical_plan
from heron.state_nodes.report import LastReport
from heron.state_nodes.scheduler_location import decode_scheduler_location
from heron.state_nodes.tmanager_location import decode_tmanager_location
from heron_cli.topologies.environment import Environment
from heron_cli.topologies.run_nodes import read_report, read_run

__all__ = ["ENDED", "Facts", "RunState", "classify", "discover", "is_ours", "is_over"]

_SMALL_PLAN_BYTES = 20_000  # of about 150 tasks; with those of `_PLANS_KEPT`, 20 MB at most
_PLANS_KEPT = 1024  # two for each topology; a list reads them in one order, so fewer would keep nothing

T = TypeVar("T")


class RunState(enum.Enum):
    """The state of a run; the values are shown to people."""

    STARTING = "starting"
    RUNNING = "running"
    PAUSED = "paused"
    FINISHED = "finished"
    FAILED = "failed"
    KILLED = "killed"
    CHANGING = "changing"
    """A command is working on it: submits it, or ends it."""
    LOST = "lost"
    """None of its processes runs, and it left no report."""
    ELSEWHERE = "elsewhere"
    """Only another host or profile can determine the state."""
    GARBLED = "garbled"
    """Its state cannot be read."""


ENDED = frozenset(RunState(state.value) for state in ENDED_STATES)


_ALIVE = {None: RunState.STARTING, TopologyState.PAUSED: RunState.PAUSED}
"""The state of a run with live processes by its physical plan; with any other plan it is running."""


@dataclass(frozen=True, slots=True)
class Facts:
    """The facts about one name of a topology.

    `run` is the execution state, and `spare` its copy, read when the original cannot be. `error` names the node that
    could not be read. `plan` is the state in the physical plan. `led` is whether a topology manager lives, `locked`
    whether another command is working on the topology. `troubles` are the containers with an error. `other` is the
    scheduler's job of that name when this state manager does not know its run; `job` is ABSENT then. `newer` is the
    error of a node that a newer version of heron-core wrote: the node is not damaged.
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
    newer: str = ""

    @property
    def known(self) -> ExecutionState | None:
        """The execution state or its copy, which names what has to be removed."""
        return self.run or self.spare


def classify(facts: Facts) -> RunState | None:
    """Return the state that follows from the facts; None when nothing of that name exists."""
    if facts.run is None:
        if facts.locked:
            return RunState.CHANGING
        return RunState.GARBLED if facts.error else _ended_state(facts.report)
    if facts.report and facts.report.status.topology_id == facts.run.topology_id:
        return _ended_state(facts.report)
    if facts.led or (facts.ours and facts.job is SchedulerState.RUNNING):
        return _ALIVE.get(facts.plan, RunState.RUNNING)
    if facts.locked:
        return RunState.CHANGING
    return RunState.LOST if facts.ours else RunState.ELSEWHERE


def is_over(facts: Facts) -> bool:
    """Return whether the run has ended, no command works on it, and something is left to clean up."""
    idle = not facts.led and not facts.locked and facts.job is not SchedulerState.RUNNING
    return idle and facts.ours and facts.run is not None and not facts.error


def is_ours(environment: Environment, run: ExecutionState) -> bool:
    """Return whether the scheduler of this environment runs it, and answers on this host."""
    anywhere = "shared" in environment.scheduler.capabilities
    return run.profile == environment.profile.name and (anywhere or run.host == socket.gethostname())


def discover(environment: Environment, topology: str, *, locked: bool | None = None) -> Facts:
    """Gather the facts about one topology. A caller that holds its lock passes ``locked=False``.

    Raises:
        StateUnavailableError: when the state manager does not answer.
        SchedulerError: when the scheduler runs the topology, and does not answer.
    """
    statemgr = environment.statemgr
    errors: list[StateError] = []
    run = _readable(errors, lambda: read_run(statemgr, topology))
    if run is None and not errors:
        _readable(errors, lambda: _check_orphans(statemgr, topology))
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
        str(errors[0]) if errors else "",
        plan,
        leader is not None,
        locked,
        ours,
        job.state,
        tuple(each for each in job.containers if each.last_error),
        *counts,
        other=None if known else found,
        spare=spare,
        newer=next((str(each) for each in errors if isinstance(each, NewerFormatError)), ""),
    )


def _ended_state(report: LastReport | None) -> RunState | None:
    if report is None:
        return None
    try:
        return RunState(report.status.state)
    except ValueError:  # of another version of heron-core
        return RunState.GARBLED


def _readable(errors: list[StateError], read: Callable[[], T]) -> T | None:
    try:
        return read()
    except StateUnavailableError:
        raise
    except StateError as error:
        errors.append(error)
        return None


def _spare(statemgr: StateManager, topology: str) -> ExecutionState | None:
    with suppress(StateError):
        if node := statemgr.get(NodeKind.SCHEDULER_LOCATION, topology):
            return decode_scheduler_location(node.value, topology).run
    return None


def _check_orphans(statemgr: StateManager, topology: str) -> None:
    if statemgr.get(NodeKind.TOPOLOGY, topology) is not None:
        msg = (
            f"node executionstate/{topology}: is missing, although there are other nodes of topology {topology!r}; "
            f"`heron kill {topology}` removes them"
        )
        raise StateError(msg)


def _counts(statemgr: StateManager, topology: str) -> tuple[int, int] | None:
    """Return the numbers of containers, with container 0 (which is in no plan), and of tasks."""
    node = statemgr.get(NodeKind.PACKING_PLAN, topology)
    if node is None:
        return None
    return _decode_once(_plan_sizes, node.value, topology)


def _plan_sizes(value: bytes, topology: str) -> tuple[int, int]:
    plan = decode_packing_plan(value, node_name(NodeKind.PACKING_PLAN, topology))
    return 1 + len(plan.containers), sum(len(each.instances) for each in plan.containers)


def _run_ids(statemgr: StateManager, topology: str, run: ExecutionState | None) -> frozenset[str]:
    """Return the runs that a job of this name can belong to; without an execution state, other nodes name them."""
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
    version, topology_id, state = _decode_once(_plan_identity, node.value, topology)
    return state if version and topology_id == run.topology_id else None


def _plan_identity(value: bytes, topology: str) -> tuple[int, str, TopologyState]:
    plan = decode_physical_plan(value, node_name(NodeKind.PHYSICAL_PLAN, topology))
    return plan.version, plan.topology_id, plan.state


def _decode_once(decode: Callable[[bytes, str], T], value: bytes, topology: str) -> T:
    """Return what a plan says; small plans are decoded once in a process, which may list topologies again and again."""
    if len(value) > _SMALL_PLAN_BYTES:
        return decode(value, topology)
    return cast("T", _decoded(decode, value, topology))


@functools.lru_cache(maxsize=_PLANS_KEPT)
def _decoded(decode: Callable[[bytes, str], object], value: bytes, topology: str) -> object:
    return decode(value, topology)
