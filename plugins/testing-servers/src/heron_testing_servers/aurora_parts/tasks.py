"""The tasks of Aurora's test server: their states, where they run, and what replaces one that has ended."""

from __future__ import annotations

import json
import sys
import uuid
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from heron.clock import wall_s
from heron_testing_servers.aurora_parts import thermos_runner
from heron_testing_servers.aurora_parts.interface import aurora, packed, unpacked
from heron_testing_servers.aurora_parts.placement import Host, Wanted, is_preferred, vetoes
from heron_testing_servers.container_processes import ContainerEnd, ContainerProcesses
from heron_testing_servers.http_service import read_json, write_json

__all__ = ["ACTIVE", "Key", "Task", "TaskStore"]

Key = tuple[str, str, str]

_STATUS = aurora.ScheduleStatus
ACTIVE = frozenset(
    getattr(_STATUS, name)
    for name in (
        "ASSIGNED", "DRAINING", "KILLING", "PENDING", "PREEMPTING", "RESTARTING", "RUNNING", "STARTING", "THROTTLED",
    )
)  # fmt: skip
"""The states of tasks that are there."""

_WAITING = {_STATUS.PENDING, _STATUS.THROTTLED}
_REPLACED = {_STATUS.PREEMPTING, _STATUS.RESTARTING, _STATUS.DRAINING}  # whatever the end, another task follows
_KEPT = 20  # ended tasks of a job; each change writes all


@dataclass(slots=True)
class Task:
    """A task: what clients see of it, and when it may be scheduled."""

    scheduled: Any
    ready_at_s: float = 0.0
    order: int = 0

    @property
    def id(self) -> str:
        """Its id."""
        return str(self.scheduled.assignedTask.taskId)

    @property
    def config(self) -> Any:  # noqa: ANN401 - a struct of thrift
        """Its `TaskConfig`."""
        return self.scheduled.assignedTask.task

    @property
    def instance(self) -> int:
        """The number of its instance."""
        return int(self.scheduled.assignedTask.instanceId)

    @property
    def status(self) -> int:
        """Its `ScheduleStatus`."""
        return int(self.scheduled.status)

    @property
    def key(self) -> Key:
        """The role, environment and name of its job."""
        return self.config.job.role, self.config.job.environment, self.config.job.name

    @property
    def since_s(self) -> float:
        """Since when it is in its state."""
        return float(self.scheduled.taskEvents[-1].timestamp) / 1000


class TaskStore:
    """All tasks, in a file. The lock of the server is held in every call."""

    def __init__(
        self, folder: Path, hosts: Iterable[Host], times: Mapping[str, float], changed: Callable[[], None]
    ) -> None:
        """`times` are those of `AuroraCluster`; `changed` is called by each change."""
        self.hosts = {each.name: each for each in hosts}
        self.tasks: dict[str, Task] = {}
        self.containers: ContainerProcesses
        """Set before the first tick."""
        self._place = folder / "tasks.json"
        self._times = times
        self._changed = changed
        self._made = 0
        found = read_json(self._place, {"tasks": [], "hosts": {}, "made": 0})
        for text, ready_at_s, order in found["tasks"]:
            task = Task(unpacked("ScheduledTask", text), ready_at_s, order)
            self.tasks[task.id] = task
        for name, (mode, gone_at_s) in found["hosts"].items():
            self.hosts[name].mode, self.hosts[name].gone_at_s = mode, gone_at_s
        self._made = found["made"]

    def save(self) -> None:
        """Write the file, and wake the server."""
        tasks = [(packed(each.scheduled), each.ready_at_s, each.order) for each in self.tasks.values()]
        hosts = {name: (each.mode, each.gone_at_s) for name, each in self.hosts.items()}
        write_json(self._place, {"tasks": tasks, "hosts": hosts, "made": self._made})
        self._changed()

    def active(self, key: Key | None = None) -> list[Task]:
        """Return the tasks of a job (of all jobs) that are there."""
        return [each for each in self.tasks.values() if each.status in ACTIVE and key in (None, each.key)]

    def insert(self, config: Any, instances: Iterable[int], before: Task | None = None, delay_s: float = 0.0) -> None:  # noqa: ANN401
        """Add tasks that wait for a host; `before` is the task that one replaces."""
        job = config.job
        for instance in instances:
            task_id = f"{job.role}-{job.environment}-{job.name}-{instance}-{uuid.uuid4()}"
            assigned = aurora.AssignedTask(taskId=task_id, task=config, assignedPorts={}, instanceId=instance)
            failures = before.scheduled.failureCount + (before.status == _STATUS.FAILED) if before else 0
            scheduled = aurora.ScheduledTask(
                assignedTask=assigned, failureCount=failures, timesPartitioned=0, taskEvents=[],
                ancestorId=before.id if before else None,
            )  # fmt: skip
            self._made += 1
            task = self.tasks[task_id] = Task(scheduled, wall_s() + delay_s, self._made)
            self._change(task, _STATUS.INIT)
            if delay_s:
                message = f"Rescheduled, penalized for {round(delay_s * 1000)} ms for flapping"
                self._change(task, _STATUS.THROTTLED, message)
            else:
                self._change(task, _STATUS.PENDING, "Rescheduled" if before else None)
        self.save()

    def stop(self, task: Task, status: int, message: str) -> None:
        """Order the end of a task: KILLING, or RESTARTING and others, which another task follows."""
        if task.status in _WAITING:
            if status == _STATUS.KILLING:
                del self.tasks[task.id]
        elif task.status != _STATUS.KILLING:
            self._change(task, status, message)
            if container := self.containers.get(task.id):
                container.stop(self._times["grace_s"])
        self.save()

    def ended(self, name: str, end: ContainerEnd) -> None:
        """Note that the container of a task has ended, and replace the task if its job is to go on."""
        task = self.tasks.get(name)
        if task is None or task.status not in ACTIVE or self.host_of(task).mode != "up":
            return
        if task.status == _STATUS.KILLING or task.status in _REPLACED:
            self._end(task, _STATUS.KILLED, "Instructed to kill task.")
        elif end.signal:
            self._end(task, _STATUS.LOST, "Executor terminated")
        elif end.exit_code:
            self._end(task, _STATUS.FAILED, f"Task failed with exit status {end.exit_code}.")
        else:
            self._end(task, _STATUS.FINISHED, None)

    def recover(self) -> None:
        """Go on with what an earlier process of this server has left, when `containers` are there."""
        for task in self.active():
            container = self.containers.get(task.id)
            if task.status not in _WAITING and container is None:
                self._end(task, _STATUS.LOST, "Executor terminated")  # the server was killed before it started it

    def tick(self) -> None:
        """Do what is due: lost hosts, delays that are over, tasks without a host."""
        now_s = wall_s()
        for task in self.active():
            host = self.host_of(task) if task.status not in _WAITING else None
            if host is not None and host.mode != "up":
                if now_s - host.gone_at_s >= self._times["lost_s"]:
                    self._end(task, _STATUS.LOST, f"Agent {host.hostname} was lost")
            elif task.status == _STATUS.STARTING and (self.containers.sandbox(task.id) / thermos_runner.LOGS).exists():
                self._change(task, _STATUS.RUNNING, "No health-check defined, task is assumed healthy.")
                self.save()
            elif task.status == _STATUS.THROTTLED and now_s >= task.ready_at_s:
                self._change(task, _STATUS.PENDING, "Rescheduled")
                self.save()
        waiting = [each for each in self.tasks.values() if each.status == _STATUS.PENDING]
        for task in sorted(
            waiting, key=lambda each: (not is_preferred(each.config), -(each.config.priority or 0), each.order)
        ):
            self._schedule(task)

    def pending_reason(self, task: Task) -> str:
        """Return why the nearest host does not fit."""
        found = [self._vetoes(task, host) for host in self.hosts.values() if host.mode == "up"]
        return ",".join(
            reason for _, reason in min(found, key=lambda each: sum(weight for weight, _ in each), default=[])
        )

    def change_mode(self, host: Host, mode: str) -> None:
        """Lose the machine of a host (``down``), the way to it (``partitioned``), or none (``up``)."""
        before, host.mode, host.gone_at_s = host.mode, mode, wall_s()
        for task in list(self.tasks.values()):
            container = self.containers.get(task.id)
            if task.scheduled.assignedTask.slaveId != host.name or container is None:
                continue
            if mode == "down":
                container.kill()
            elif mode == "up" and task.status not in ACTIVE:
                container.stop(0.0)  # a task that was given up meanwhile
            elif mode == "up" and (before == "down" or container.end is not None):
                self._end(task, _STATUS.LOST, "Executor terminated")
        self.save()

    def host_of(self, task: Task) -> Host:
        """Return the host of a task that has one."""
        return self.hosts[task.scheduled.assignedTask.slaveId]

    def _schedule(self, task: Task) -> None:
        hosts = [each for each in self.hosts.values() if each.mode == "up"]
        fitting = [each for each in hosts if not self._vetoes(task, each)]
        if fitting:
            self._launch(task, min(fitting, key=lambda each: len(self._on(each))))
        elif is_preferred(task.config):
            self._preempt(task, hosts)

    def _preempt(self, task: Task, hosts: Iterable[Host]) -> None:
        """Stop preemptible tasks of one host, if the task then fits."""
        for host in hosts:
            victims: list[Task] = []
            for victim in sorted(
                (each for each in self._on(host) if not is_preferred(each.config)), key=lambda at: -at.order
            ):
                victims.append(victim)
                if not self._vetoes(task, host, without=victims):
                    for each in victims:
                        if each.status in {_STATUS.RUNNING, _STATUS.STARTING}:
                            self.stop(each, _STATUS.PREEMPTING, f"Preempting in favor of {task.id}")
                    return

    def _launch(self, task: Task, host: Host) -> None:
        assigned = task.scheduled.assignedTask
        taken = {port for each in self._on(host) for port in each.scheduled.assignedTask.assignedPorts.values()}
        free = (port for port in range(host.first_port, host.last_port + 1) if port not in taken)
        assigned.slaveId, assigned.slaveHost = host.name, host.hostname
        assigned.assignedPorts = dict(zip(Wanted.by(task.config).ports, free, strict=False))
        self._change(task, _STATUS.ASSIGNED)
        variables = {
            "mesos.hostname": host.hostname,
            "mesos.instance": str(task.instance),
            "thermos.task_id": task.id,
            "thermos.user": task.config.job.role,
            **{f"thermos.ports[{name}]": str(port) for name, port in assigned.assignedPorts.items()},
        }
        try:
            given = {"variables": variables, "data": json.loads(task.config.executorConfig.data)}
        except ValueError as error:
            self._end(task, _STATUS.FAILED, f"Could not deserialize the executor config: {error}")
            return
        place = self.containers.sandbox(task.id).parent / "thermos.json"
        place.touch(mode=0o600)
        place.write_text(json.dumps(given), encoding="utf-8")
        self._change(task, _STATUS.STARTING, "Initializing sandbox.")
        self.save()
        command = [sys.executable, "-I", "-S", thermos_runner.__file__, str(place)]
        self.containers.start(task.id, command, {"MESOS_TASK_ID": task.id})

    def _end(self, task: Task, status: int, message: str | None) -> None:
        before, started_s = task.status, task.since_s
        self._change(task, status, message)
        same = [each for each in self.tasks.values() if each.key == task.key and each.status not in ACTIVE]
        for each in sorted(same, key=lambda at: at.order)[:-_KEPT]:
            del self.tasks[each.id]
        allowed = task.config.maxTaskFailures or 1
        failures = task.scheduled.failureCount + (status == _STATUS.FAILED)
        again = task.config.isService or status in {_STATUS.LOST, _STATUS.KILLED}
        again = again or (status == _STATUS.FAILED and (allowed < 0 or failures < allowed))
        if before != _STATUS.KILLING and (again or before in _REPLACED):
            flaps = (
                before in {_STATUS.ASSIGNED, _STATUS.STARTING, _STATUS.RUNNING}
                and wall_s() - started_s < self._times["flapping_s"]
            )
            self.insert(task.config, [task.instance], task, self._penalty(task) if flaps else 0.0)
        self.save()

    def _penalty(self, task: Task) -> float:
        """Return how long the next task waits: twice as long as this one has waited, up to a limit."""
        waited = [each for each in task.scheduled.taskEvents if each.status == _STATUS.THROTTLED]
        first = self._times["first_delay_s"]
        if not waited:
            return first
        events = task.scheduled.taskEvents
        until = events[events.index(waited[0]) + 1].timestamp
        return min(max(first, 2 * float(until - waited[0].timestamp) / 1000), self._times["longest_delay_s"])

    def _on(self, host: Host) -> list[Task]:
        return [each for each in self.active() if each.scheduled.assignedTask.slaveId == host.name]

    def _vetoes(self, task: Task, host: Host, without: Iterable[Task] = ()) -> list[tuple[int, str]]:
        left_out = {each.id for each in without}
        on_host = [each.config for each in self._on(host) if each.id not in left_out]
        of_job = [self.host_of(each) for each in self.active(task.key) if each.scheduled.assignedTask.slaveId]
        return vetoes(task.config, host, on_host, of_job)

    def _change(self, task: Task, status: int, message: str | None = None) -> None:
        task.scheduled.status = status
        at = round(wall_s() * 1000)
        task.scheduled.taskEvents.append(
            aurora.TaskEvent(timestamp=at, status=status, message=message, scheduler="127.0.0.1")
        )
