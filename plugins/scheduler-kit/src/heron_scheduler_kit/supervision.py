"""Decides what happens to the containers of a job: events in, instructions out, time as a number. Pure.

                  started            failed (start again after the back-off; too often: DOWN, until a restart is asked)
    WAITING ───────────────▶ RUNNING ───────────────▶ WAITING
       │                     │  │  │
       │          restart asked │  └── finished (exit code 0) ──▶ ENDED, for good
       │                     ▼  │ stop asked
       │            RESTARTING  ▼
       │   gone: WAITING, due   STOPPING ──── gone ────▶ STOPPED
       └── stop asked: STOPPED

A container that was told to stop is killed when its grace time is over. A container that ended by itself
waits before its next attempt: 0.1 s at first, doubling to 10 s, and 0.1 s again after a stable run.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable
from dataclasses import dataclass, field

from heron.errors import SchedulerError, known
from heron.state_machine import StateMachine

__all__ = [
    "BackoffLimits",
    "Container",
    "ContainerState",
    "Instruction",
    "Kill",
    "Start",
    "Supervision",
    "Terminate",
    "next_wait_s",
]


@dataclass(frozen=True, slots=True)
class BackoffLimits:
    """Seconds: the first wait, the longest wait, and the length of a stable run, after which the first wait applies."""

    first_s: float
    longest_s: float
    stable_s: float


def next_wait_s(limits: BackoffLimits, last_wait_s: float, ran_s: float) -> float:
    """Return the wait after a run of `ran_s` seconds that followed a wait of `last_wait_s` (0 before the first run)."""
    if ran_s >= limits.stable_s or last_wait_s <= 0:
        return min(limits.first_s, limits.longest_s)
    return min(2 * last_wait_s, limits.longest_s)


class ContainerState(enum.Enum):
    WAITING = "waiting"
    RUNNING = "running"
    RESTARTING = "restarting"
    STOPPING = "stopping"
    DOWN = "down"
    ENDED = "ended"
    STOPPED = "stopped"


class _Event(enum.Enum):
    STARTED = "started"
    FINISHED = "finished"
    FAILED = "failed"
    GIVEN_UP = "given up"
    RESTART_ASKED = "restart asked"
    STOP_ASKED = "stop asked"


_TABLE = {
    (ContainerState.WAITING, _Event.STARTED): ContainerState.RUNNING,
    (ContainerState.WAITING, _Event.FAILED): ContainerState.WAITING,
    (ContainerState.WAITING, _Event.RESTART_ASKED): ContainerState.WAITING,
    (ContainerState.WAITING, _Event.STOP_ASKED): ContainerState.STOPPED,
    (ContainerState.RUNNING, _Event.FINISHED): ContainerState.ENDED,
    (ContainerState.RUNNING, _Event.FAILED): ContainerState.WAITING,
    (ContainerState.RUNNING, _Event.GIVEN_UP): ContainerState.DOWN,
    (ContainerState.DOWN, _Event.RESTART_ASKED): ContainerState.WAITING,
    (ContainerState.DOWN, _Event.STOP_ASKED): ContainerState.STOPPED,
    (ContainerState.RUNNING, _Event.RESTART_ASKED): ContainerState.RESTARTING,
    (ContainerState.RUNNING, _Event.STOP_ASKED): ContainerState.STOPPING,
    (ContainerState.RESTARTING, _Event.FINISHED): ContainerState.WAITING,
    (ContainerState.RESTARTING, _Event.FAILED): ContainerState.WAITING,
    (ContainerState.RESTARTING, _Event.RESTART_ASKED): ContainerState.RESTARTING,
    (ContainerState.RESTARTING, _Event.STOP_ASKED): ContainerState.STOPPING,
    (ContainerState.STOPPING, _Event.FINISHED): ContainerState.STOPPED,
    (ContainerState.STOPPING, _Event.FAILED): ContainerState.STOPPED,
    (ContainerState.STOPPING, _Event.STOP_ASKED): ContainerState.STOPPING,
    (ContainerState.ENDED, _Event.STOP_ASKED): ContainerState.ENDED,
    (ContainerState.STOPPED, _Event.STOP_ASKED): ContainerState.STOPPED,
}
_ALIVE = frozenset({ContainerState.RUNNING, ContainerState.RESTARTING, ContainerState.STOPPING})
_OVER = frozenset({ContainerState.ENDED, ContainerState.STOPPED})


@dataclass(frozen=True, slots=True)
class Start:
    """Start the container; `attempt` counts from 1."""

    container_id: int
    attempt: int


@dataclass(frozen=True, slots=True)
class Terminate:
    """Ask the executor of the container to end."""

    container_id: int


@dataclass(frozen=True, slots=True)
class Kill:
    """Kill the executor and its processes, because the grace time is over."""

    container_id: int


Instruction = Start | Terminate | Kill


@dataclass(slots=True)
class Container:
    """One container. Only `Supervision` changes it. Times are monotonic seconds.

    `faults` counts the failures in a row that the executor caused by itself.
    """

    container_id: int
    attempts: int
    start_at_s: float
    machine: StateMachine[ContainerState, _Event] = field(init=False)
    started_at_s: float = 0.0
    kill_at_s: float | None = None
    wait_s: float = 0.0
    faults: int = 0
    last_error: str = ""

    def __post_init__(self) -> None:
        self.machine = StateMachine(f"container {self.container_id}", _TABLE, ContainerState.WAITING)

    @property
    def state(self) -> ContainerState:
        return self.machine.state

    @property
    def running(self) -> bool:
        return self.state in _ALIVE


class Supervision:
    """The containers of one job and their states."""

    def __init__(self, limits: BackoffLimits, grace_s: float, restart_limit: int = 0) -> None:
        """A container is given up after more than `restart_limit` faults in a row; 0 means never."""
        self._limits = limits
        self._restart_limit = restart_limit
        self._grace_s = grace_s
        self._containers: dict[int, Container] = {}

    def containers(self) -> tuple[Container, ...]:
        """Return the containers of the job in the order of their ids."""
        return tuple(self._containers[each] for each in sorted(self._containers))

    def over(self) -> bool:
        """Return whether no container runs or will run again.

        Containers that are down do not keep a job alive whose other containers have ended. A job with only such
        containers goes on, because each can still be restarted.
        """
        states = {each.state for each in self._containers.values()}
        return states <= _OVER or (ContainerState.ENDED in states and states <= _OVER | {ContainerState.DOWN})

    def container(self, container_id: int) -> Container:
        """Return a container. Raises SchedulerError when the job has no container of that id."""
        found = self._containers.get(container_id)
        if found is None:
            message = f"container {container_id} is unknown; this job has {known(map(str, self._containers))}"
            raise SchedulerError(message)
        return found

    def add(self, container_id: int, first_attempt: int, now_s: float) -> None:
        """Add a container to be started now. Raises SchedulerError when the job has a container of that id."""
        if container_id in self._containers:
            message = f"container {container_id} exists already; remove it first, or use another id"
            raise SchedulerError(message)
        self._containers[container_id] = Container(container_id, first_attempt - 1, now_s)

    def forget(self, container_id: int) -> None:
        """Remove a container that has stopped from the job."""
        self._containers.pop(container_id, None)

    def due(self, now_s: float) -> tuple[Instruction, ...]:
        """Return the instructions that are due; the caller answers each start by `started` or `exited`."""
        instructions: list[Instruction] = []
        for each in self._containers.values():
            if each.state is ContainerState.WAITING and each.start_at_s <= now_s:
                each.attempts += 1
                instructions.append(Start(each.container_id, each.attempts))
            elif each.running and each.kill_at_s is not None and each.kill_at_s <= now_s:
                each.kill_at_s = None
                instructions.append(Kill(each.container_id))
        return tuple(instructions)

    def next_due_s(self) -> float | None:
        """Return the time of the next instruction, unless an event comes first; None without one."""
        times = [each.start_at_s for each in self._containers.values() if each.state is ContainerState.WAITING]
        times += [each.kill_at_s for each in self._containers.values() if each.kill_at_s is not None]
        return min(times, default=None)

    def started(self, container_id: int, now_s: float) -> None:
        each = self.container(container_id)
        each.machine.handle(_Event.STARTED)
        each.started_at_s = now_s

    def exited(
        self, container_id: int, now_s: float, error: str, *, own: bool = False, ran_s: float | None = None
    ) -> None:
        """Record that the executor ended (see `Exit`) or could not be started; `error` is "" for exit code 0."""
        each = self.container(container_id)
        asked = each.state is not ContainerState.RUNNING and each.running
        if ran_s is None:
            ran_s = now_s - each.started_at_s if each.running else 0.0
        if ran_s >= self._limits.stable_s:
            each.faults = 0
        each.faults += own and not asked
        given_up = own and not asked and 0 < self._restart_limit < each.faults
        each.machine.handle(_Event.GIVEN_UP if given_up else _Event.FAILED if error else _Event.FINISHED)
        each.kill_at_s = None
        if error and not asked:
            each.last_error = error
            each.wait_s = next_wait_s(self._limits, each.wait_s, ran_s)
            each.start_at_s = now_s + each.wait_s
        else:
            each.start_at_s = now_s

    def restart(self, container_id: int, now_s: float) -> tuple[Instruction, ...]:
        """End and start a container at once. Raises SchedulerError when it is unknown, ended or being removed."""
        each = self.container(container_id)
        if not each.machine.allows(_Event.RESTART_ASKED):
            message = f"container {container_id} is {each.state.value}; only a container that has not ended can restart"
            raise SchedulerError(message)
        each.machine.handle(_Event.RESTART_ASKED)
        each.wait_s = 0.0
        each.faults = 0
        each.start_at_s = now_s
        return self._terminate(each, now_s)

    def stop(self, container_ids: Iterable[int], now_s: float) -> tuple[Instruction, ...]:
        """End containers for good. Raises SchedulerError, and changes nothing, when one is unknown."""
        stopped = [self.container(container_id) for container_id in container_ids]
        for each in stopped:
            each.machine.handle(_Event.STOP_ASKED)
        return tuple(instruction for each in stopped for instruction in self._terminate(each, now_s))

    def _terminate(self, each: Container, now_s: float) -> tuple[Instruction, ...]:
        if not each.running:
            return ()
        if each.kill_at_s is None:
            each.kill_at_s = now_s + self._grace_s
        return (Terminate(each.container_id),)
