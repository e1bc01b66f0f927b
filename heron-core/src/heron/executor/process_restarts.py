"""When a process that died is restarted, and when it is given up. Pure: takes deaths, returns instructions.

A process is restarted after a back-off that doubles with each death in a row. A process that ran for a stable time has
its full budget again. A process is given up after too many deaths in a row, or if its user code cannot be initialised
in a topology that stops on failure.

Causes from outside do not count against the budget: a signal that a process does not send to itself, a state manager
that cannot be reached, a disk that is full at its start (`EXIT_TEMPORARY`, which `kernel.role_process` and
`Executor._start` give). Such a process is restarted for ever, finally once in the longest back-off, so that it is back
when the cause is gone. Its status shows the cause meanwhile. The same holds for services, without which a topology
works.
"""

from __future__ import annotations

import enum
import signal
from collections.abc import Iterable
from dataclasses import dataclass

from heron.driver_kit.parent_process import EXIT_TEMPORARY, EXIT_USER_INIT
from heron.kernel.settings import EngineSettings
from heron.state_machine import StateMachine

__all__ = ["ProcessPhase", "ProcessRestarts", "ProcessState", "RestartPolicy", "StartAfter", "describe_exit"]


_FROM_OUTSIDE = frozenset((EXIT_TEMPORARY, -signal.SIGKILL, -signal.SIGTERM, -signal.SIGINT, -signal.SIGHUP))


class ProcessPhase(enum.Enum):
    """The phase of a process's life."""

    WAITING = "waiting"  # for its first start or a restart
    RUNNING = "running"
    GIVEN_UP = "given up"
    STOPPED = "stopped"


class _Event(enum.Enum):
    STARTED = enum.auto()
    DIED = enum.auto()
    DIED_FOR_GOOD = enum.auto()
    STOPPED = enum.auto()


_TABLE = {
    (ProcessPhase.WAITING, _Event.STARTED): ProcessPhase.RUNNING,
    (ProcessPhase.WAITING, _Event.DIED): ProcessPhase.WAITING,  # the start failed
    (ProcessPhase.WAITING, _Event.DIED_FOR_GOOD): ProcessPhase.GIVEN_UP,
    (ProcessPhase.RUNNING, _Event.DIED): ProcessPhase.WAITING,
    (ProcessPhase.RUNNING, _Event.DIED_FOR_GOOD): ProcessPhase.GIVEN_UP,
    (ProcessPhase.WAITING, _Event.STOPPED): ProcessPhase.STOPPED,
    (ProcessPhase.RUNNING, _Event.STOPPED): ProcessPhase.STOPPED,
    (ProcessPhase.GIVEN_UP, _Event.STOPPED): ProcessPhase.STOPPED,
    (ProcessPhase.STOPPED, _Event.STOPPED): ProcessPhase.STOPPED,
}


@dataclass(frozen=True, slots=True)
class RestartPolicy:
    """Back-off and budget of restarts."""

    backoff_s: float
    backoff_max_s: float
    limit: int
    stable_s: float
    stop_on_failure: bool = False

    @classmethod
    def of(cls, settings: EngineSettings) -> RestartPolicy:
        """The policy of a topology's settings."""
        return cls(
            settings.restart_backoff_s,
            settings.restart_backoff_max_s,
            settings.restart_limit,
            settings.stable_s,
            settings.on_failure == "stop",
        )

    def delay_s(self, deaths: int) -> float:
        """The wait after `deaths` (at least 1) in a row."""
        return float(min(self.backoff_s * 2.0 ** min(deaths - 1, 32), self.backoff_max_s))


@dataclass(frozen=True, slots=True)
class StartAfter:
    """Start this process after a delay."""

    process: str
    delay_s: float


@dataclass(frozen=True, slots=True)
class ProcessState:
    """The reported state of a process: the number of restarts, and why it last died ("" if it did not)."""

    process: str
    phase: ProcessPhase
    restarts: int
    reason: str


class _Process:
    __slots__ = ("deaths", "faults", "machine", "reason", "started_at_s", "starts")

    def __init__(self, name: str) -> None:
        self.machine = StateMachine(name, _TABLE, ProcessPhase.WAITING)
        self.starts = 0
        self.deaths = 0  # in a row
        self.faults = 0  # the deaths among them that count
        self.started_at_s = 0.0
        self.reason = ""


class ProcessRestarts:
    """The restarts of the processes of one container; times are monotonic seconds."""

    def __init__(
        self, processes: Iterable[str], policy: RestartPolicy, *, never_given_up: frozenset[str] = frozenset()
    ) -> None:
        self._processes = {name: _Process(name) for name in processes}
        self._policy = policy
        self._never_given_up = never_given_up

    def add(self, process: str) -> None:
        """A process that waits for its first start."""
        self._processes[process] = _Process(process)

    def remove(self, process: str) -> None:
        """A process that is not started any more."""
        del self._processes[process]

    def restarts(self, process: str) -> int:
        """The number of restarts so far; for a process that waits, the number that its next start will have."""
        found = self._processes[process]
        waiting = found.machine.state is ProcessPhase.WAITING
        return found.starts if waiting else max(0, found.starts - 1)

    def started(self, process: str, now_s: float) -> ProcessState:
        """Notes that a process runs."""
        found = self._processes[process]
        found.machine.handle(_Event.STARTED)
        found.starts += 1
        found.started_at_s = now_s
        return self.state(process)

    def died(self, process: str, code: int, reason: str, now_s: float) -> StartAfter | None:
        """Notes that a process ended unasked (`code` as in `subprocess`); returns None when it is given up."""
        found = self._processes[process]
        if found.machine.state is ProcessPhase.RUNNING and now_s - found.started_at_s >= self._policy.stable_s:
            found.deaths = found.faults = 0
        found.deaths += 1
        found.faults += code not in _FROM_OUTSIDE
        found.reason = reason
        hopeless = code == EXIT_USER_INIT and self._policy.stop_on_failure
        if process not in self._never_given_up and (hopeless or found.faults > self._policy.limit):
            found.machine.handle(_Event.DIED_FOR_GOOD)
            return None
        found.machine.handle(_Event.DIED)
        return StartAfter(process, self._policy.delay_s(found.deaths))

    def stop(self) -> None:
        """Ends all restarts; idempotent."""
        for found in self._processes.values():
            found.machine.handle(_Event.STOPPED)

    def may_start(self, process: str) -> bool:
        """Whether the process waits for a start; False for one that was removed meanwhile."""
        found = self._processes.get(process)
        return found is not None and found.machine.state is ProcessPhase.WAITING

    def state(self, process: str) -> ProcessState:
        """The present state of a process."""
        found = self._processes[process]
        return ProcessState(process, found.machine.state, self.restarts(process), found.reason)

    def states(self) -> tuple[ProcessState, ...]:
        """The present state of every process, in order."""
        return tuple(map(self.state, self._processes))


def describe_exit(code: int) -> str:
    """An exit code of `subprocess` as a text."""
    if code >= 0:
        return f"exit code {code}"
    try:
        return f"killed by {signal.Signals(-code).name}"
    except ValueError:
        return f"killed by signal {-code}"
