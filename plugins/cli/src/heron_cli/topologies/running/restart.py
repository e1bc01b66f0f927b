"""Restarts containers, and changes a topology between running and paused; waits until that is done."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass

from heron.clock import monotonic_s
from heron.errors import SchedulerError, TopologyFailedError, UnreachableError, UsageError, known
from heron.ipc.documents.status import TopologyStatus
from heron.spi.scheduler import ContainerStatus, Scheduler, SchedulerState
from heron_cli.topologies.hosts import avoid_blocked_hosts, leave_host
from heron_cli.topologies.running.remote_topology import RemoteTopology
from heron_cli.topologies.running.topology_end import ENDED, check_not_ended

__all__ = [
    "RestartedContainer",
    "StateChange",
    "containers_of",
    "given_up",
    "missing",
    "refused",
    "restart_containers",
    "set_state",
]

_MANAGERS = ("tmanager", "metricsmgr")
_OTHERS = ("stmgr", "metricsmgr")
_FAILED_STARTS = 3  # an executor that ends by itself this often reports why; further starts do not remedy it
_DOWN = ("down", "failed")
_POLL_S = 0.1


@dataclass(frozen=True, slots=True)
class StateChange:
    """The result of `Client.activate` and `Client.deactivate`; states are ``running``, ``paused`` and so on."""

    topology: str
    topology_id: str
    before: str
    state: str


@dataclass(frozen=True, slots=True)
class RestartedContainer:
    """A container that was restarted, and the seconds until all of it was running again."""

    container_id: int
    took_s: float


def restart_containers(
    scheduler: Scheduler, profile: str, topology: RemoteTopology, container: int | None, *, elsewhere: bool = False
) -> Iterator[RestartedContainer]:
    """Restart one container, or all of them one after the other; yield each when it is back.

    The time limit of `topology` is that of each container. A container on a blocked host starts again on another one,
    if the scheduler can avoid hosts; with `elsewhere`, each container does.

    Raises:
        UsageError: when the container does not exist, or the scheduler cannot restart containers; nothing was changed.
        HostsNotAvoidedError: with `elsewhere`, when the scheduler cannot avoid hosts; nothing was changed.
        SchedulerError: when a container cannot be started.
        TopologyFailedError: when a process or task of it was given up.
        UnreachableError: when it is not back in time; it is still being started.
    """
    status = topology.status(control=True)  # a user who may not change a topology may not restart it
    containers = containers_of(status)
    if container is not None and container not in containers:
        ids = known(map(str, containers))
        msg = f"topology {topology.name!r} has no container {container}; it has {ids}"
        raise UsageError(msg)
    if "restart" not in scheduler.capabilities:
        msg = f"the scheduler of profile {profile!r} cannot restart containers; kill the topology and submit it"
        raise UsageError(msg)
    for each in containers if container is None else (container,):
        if elsewhere:
            leave_host(scheduler, topology.statemgr, topology.name, each)
        else:
            avoid_blocked_hosts(scheduler, topology.statemgr)
        yield RestartedContainer(each, round(_restart_one(scheduler, profile, topology, each), 3))


def _restart_one(scheduler: Scheduler, profile: str, topology: RemoteTopology, container_id: int) -> float:
    before = topology.status()
    began_s = monotonic_s()
    job = scheduler.status(topology.name).of(topology.run.topology_id)
    if job.state is not SchedulerState.RUNNING:
        msg = (
            f"the scheduler of profile {profile!r} does not run topology {topology.name!r}; "
            "give the profile that submitted it"
        )
        raise UsageError(msg)
    attempts = next((each.attempts for each in job.containers if each.container_id == container_id), 0)
    scheduler.restart(topology.name, container_id)
    pause = threading.Event()
    while True:
        now = topology.status()
        _check(before, now, container_id)
        lacking = missing(before, now, container_id)
        took_s = monotonic_s() - began_s
        if not lacking:
            return took_s
        error, failed_starts = refused(_container(scheduler, topology, container_id), attempts)
        if failed_starts:
            msg = (
                f"container {container_id} of topology {topology.name!r} does not begin, {failed_starts} times: "
                f"{error}; the scheduler still tries, see `heron status {topology.name}`"
            )
            raise TopologyFailedError(msg)
        if took_s >= topology.timeout_s:
            msg = (
                f"container {container_id} of topology {topology.name!r} is not back after {topology.timeout_s:g} s: "
                f"{error or lacking}; see `heron status {topology.name}` and `heron logs {topology.name}`"
            )
            raise UnreachableError(msg)
        pause.wait(_POLL_S)


def _container(scheduler: Scheduler, topology: RemoteTopology, container_id: int) -> ContainerStatus | None:
    """Return the scheduler's view of the container; None while the scheduler does not answer."""
    try:
        job = scheduler.status(topology.name).of(topology.run.topology_id)
    except SchedulerError:
        return None
    return next((each for each in job.containers if each.container_id == container_id), None)


def _check(before: TopologyStatus, now: TopologyStatus, container_id: int) -> None:
    check_not_ended(now)
    if why := given_up(before, now, container_id):
        more = f"`heron logs {now.topology}` has more"
        msg = f"container {container_id} of topology {now.topology!r} is not back: {why}; {more}"
        raise TopologyFailedError(msg)


def set_state(topology: RemoteTopology, state: str) -> str:
    """Make the topology ``running`` or ``paused`` once it has started; return the state before.

    Raises:
        UnreachableError: when it has not started within the time limit; nothing was changed.
        HeronError: as `RemoteTopology.change_state` does.
    """
    deadline_s = monotonic_s() + topology.timeout_s
    pause = threading.Event()
    while not ((status := topology.status(control=True)).plan_version or status.state in ENDED):
        if monotonic_s() >= deadline_s:
            missing_ids = sorted({task.container_id for task in status.tasks if task.state == "starting"})
            msg = (
                f"topology {topology.name!r} is still starting after {topology.timeout_s:g} s, it waits for containers "
                f"{missing_ids}; nothing was changed, see `heron status {topology.name}`"
            )
            raise UnreachableError(msg)
        pause.wait(_POLL_S)
    topology.change_state(state)
    return status.state


def containers_of(status: TopologyStatus) -> tuple[int, ...]:
    """Return the containers of a topology; container 0, which has the topology manager, comes last."""
    return (*sorted({task.container_id for task in status.tasks}), 0)


def missing(before: TopologyStatus, now: TopologyStatus, container_id: int) -> str:
    """Return which part of the container is not back yet, or ""; `before` is the status before the restart."""
    former = _incarnations(before, container_id)
    present = {each.process: each for each in now.processes if each.container_id == container_id}
    standby = {"tmanager"} & former.keys() if container_id else ()
    for name in (*_expected(now, container_id), *standby):
        found = present.get(name)
        if found is None or found.incarnation <= former.get(name, 0):
            return f"{name} is not started again yet"
        if found.state != "running":
            return f"{name} is {found.state}{_because(found.last_error)}"
    for task in now.tasks:
        if task.container_id == container_id and task.state not in {"running", "ended"}:
            return f"task {task.component}/{task.task_id} is {task.state}{_because(task.last_error)}"
    silent = {each.container_id for each in before.processes} - {each.container_id for each in now.processes}
    return f"container {min(silent)} has not found the topology manager yet" if silent else ""


def given_up(before: TopologyStatus, now: TopologyStatus, container_id: int) -> str:
    """Return the task or process of the container that was given up, with its error; "" when there is none.

    Until it has started again, a process that was given up before the restart does not count.
    """
    former = _incarnations(before, container_id)
    present = _incarnations(now, container_id)
    again = {name for name, incarnation in present.items() if incarnation > former.get(name, 0)}
    for task in now.tasks:
        if task.state in _DOWN and task.container_id == container_id and f"{task.component}-{task.task_id}" in again:
            return f"task {task.component}/{task.task_id} is {task.state}{_because(task.last_error)}"
    for each in now.processes:
        if each.state in _DOWN and each.container_id == container_id and each.process in again:
            return f"{each.process} is {each.state}{_because(each.last_error)}"
    return ""


def refused(now: ContainerStatus | None, attempts: int) -> tuple[str, int]:
    """Return why the executor does not begin, and the number of failed starts after which to give up (0: not yet).

    `attempts` is the number of starts before the restart, which adds one.
    """
    if now is None or now.running or now.attempts <= attempts or not now.last_error:
        return "", 0
    tried = now.attempts - attempts
    return now.last_error, tried if tried >= _FAILED_STARTS else 0


def _expected(status: TopologyStatus, container_id: int) -> tuple[str, ...]:
    tasks = (f"{each.component}-{each.task_id}" for each in status.tasks if each.container_id == container_id)
    return "executor", *(_OTHERS if container_id else _MANAGERS), *tasks


def _incarnations(status: TopologyStatus, container_id: int) -> dict[str, int]:
    return {each.process: each.incarnation for each in status.processes if each.container_id == container_id}


def _because(error: str) -> str:
    return f": {error}" if error else ""
