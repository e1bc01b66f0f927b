"""What to do with the containers of a job, without doing it: events in, instructions out, time as a number.

                  started            failed (start again after the back-off; too often: DOWN, until a restart is asked)
    WAITING ───────────────▶ RUNNING ───────────────▶ WAITING
       │                     │  │  │
       │          restart asked │  └── finished (exit code 0) ──▶ ENDED, for good
       │                     ▼  │ stop asked
       │            RESTARTING  ▼
       │   gone: WAITING, due   STOPPING ──── gone ────▶ STOPPED
       └── stop asked: STOPPED

A container that is told to stop has the grace time for it; then it is killed.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable
from dataclasses import dataclass, field

from heron.errors import SchedulerError, known
from heron.state_machine import StateMachine
from heron_scheduler_kit.backoff import BackoffLimits, next_wait_s

__all__ = ["Container", "ContainerState", "Instruction", "Kill", "Start", "Supervision", "Terminate"]


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
    """Start the container; this is its `attempt`-th time."""

    container_id: int
    attempt: int


@dataclass(frozen=True, slots=True)
class Terminate:
    """Ask the container's executor to end."""

    container_id: int


@dataclass(frozen=True, slots=True)
class Kill:
    """The grace time is over: end the executor and whatever it started."""

    container_id: int


Instruction = Start | Terminate | Kill


@dataclass(slots=True)
class Container:
    """One container; read by the status, changed by `Supervision` only. Times are monotonic seconds.

    `faults` are the ends in a row that were its executor's own failing.
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
    """The containers of one job."""

    def __init__(self, limits: BackoffLimits, grace_s: float, restart_limit: int = 0) -> None:
        """After more than `restart_limit` faults in a row a container is left down (0: never)."""
        self._limits = limits
        self._restart_limit = restart_limit
        self._grace_s = grace_s
        self._containers: dict[int, Container] = {}

    def containers(self) -> tuple[Container, ...]:
        """All that are not removed, by id."""
        return tuple(self._containers[each] for each in sorted(self._containers))

    def over(self) -> bool:
        """Whether no container runs or will run again.

        One that is down does not keep a job whose others have ended; where all are down one can still be restarted.
        """
        states = {each.state for each in self._containers.values()}
        return states <= _OVER or (ContainerState.ENDED in states and states <= _OVER | {ContainerState.DOWN})

    def container(self, container_id: int) -> Container:
        """Raises SchedulerError when there is none of that id."""
        found = self._containers.get(container_id)
        if found is None:
            message = f"container {container_id} is unknown; this job has {known(map(str, self._containers))}"
            raise SchedulerError(message)
        return found

    def add(self, container_id: int, first_attempt: int, now_s: float) -> None:
        """A container to be started now. Raises SchedulerError when there is one of that id."""
        if container_id in self._containers:
            message = f"container {container_id} is there already; remove it first, or give another id"
            raise SchedulerError(message)
        self._containers[container_id] = Container(container_id, first_attempt - 1, now_s)

    def forget(self, container_id: int) -> None:
        """A removed container that stopped is no longer part of the job."""
        self._containers.pop(container_id, None)

    def due(self, now_s: float) -> tuple[Instruction, ...]:
        """What the time has come for; each start is to be answered by `started` or `exited`."""
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
        """When `due` will next have something, unless an event comes first."""
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
        """Its executor ended (as in `Exit`), or could not be started; `error` is empty for exit code 0."""
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
        """Ends it and starts it anew, at once. Raises SchedulerError when it is unknown, ended or being removed."""
        each = self.container(container_id)
        if not each.machine.allows(_Event.RESTART_ASKED):
            message = f"container {container_id} is {each.state.value}; only one that is to run can be restarted"
            raise SchedulerError(message)
        each.machine.handle(_Event.RESTART_ASKED)
        each.wait_s = 0.0
        each.faults = 0
        each.start_at_s = now_s
        return self._terminate(each, now_s)

    def stop(self, container_ids: Iterable[int], now_s: float) -> tuple[Instruction, ...]:
        """Ends them for good. Raises SchedulerError when one is unknown; nothing is changed then."""
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
