"""When a dead process is started again, and when it is left down (design D10). Pure: ends in, instructions out.

A process that died is started again after a back-off that doubles from death to death; one that ran for long enough has
its budget back; one that died too often in a row, or whose user code cannot be initialised in a topology that stops on
failure, is given up.

What comes from outside is not its failing and does not count: a signal that nobody sends to himself, a state that
cannot be read or written, a disk that is full. It goes on being started, at last once in the longest back-off, so that
it is back when the cause is gone, and its status says meanwhile what happens to it.
"""

from __future__ import annotations

import enum
import signal
from collections.abc import Iterable
from dataclasses import dataclass

from heron.driver_kit.parent_process import EXIT_TEMPORARY, EXIT_USER_INIT
from heron.kernel.settings import EngineSettings
from heron.state_machine import StateMachine

__all__ = ["Phase", "ProcessState", "RestartPolicy", "StartAfter", "Supervisor", "ending"]


_FROM_OUTSIDE = frozenset((EXIT_TEMPORARY, -signal.SIGKILL, -signal.SIGTERM, -signal.SIGINT, -signal.SIGHUP))


class Phase(enum.Enum):
    """Where a process is in its life."""

    WAITING = "waiting"  # to be started, for the first time or again
    RUNNING = "running"
    GIVEN_UP = "given up"
    STOPPED = "stopped"


class _Event(enum.Enum):
    STARTED = enum.auto()
    DIED = enum.auto()
    DIED_FOR_GOOD = enum.auto()
    STOPPED = enum.auto()


_TABLE = {
    (Phase.WAITING, _Event.STARTED): Phase.RUNNING,
    (Phase.WAITING, _Event.DIED): Phase.WAITING,  # it could not even be started
    (Phase.WAITING, _Event.DIED_FOR_GOOD): Phase.GIVEN_UP,
    (Phase.RUNNING, _Event.DIED): Phase.WAITING,
    (Phase.RUNNING, _Event.DIED_FOR_GOOD): Phase.GIVEN_UP,
    (Phase.WAITING, _Event.STOPPED): Phase.STOPPED,
    (Phase.RUNNING, _Event.STOPPED): Phase.STOPPED,
    (Phase.GIVEN_UP, _Event.STOPPED): Phase.STOPPED,
    (Phase.STOPPED, _Event.STOPPED): Phase.STOPPED,
}


@dataclass(frozen=True, slots=True)
class RestartPolicy:
    """The figures of D10."""

    backoff_s: float
    backoff_max_s: float
    limit: int
    stable_s: float
    stop_on_failure: bool = False

    @classmethod
    def of(cls, settings: EngineSettings) -> RestartPolicy:
        """As a topology's settings say."""
        return cls(
            settings.restart_backoff_s,
            settings.restart_backoff_max_s,
            settings.restart_limit,
            settings.stable_s,
            settings.on_failure == "stop",
        )

    def delay_s(self, deaths: int) -> float:
        """The wait after so many deaths in a row (≥ 1)."""
        return float(min(self.backoff_s * 2.0 ** min(deaths - 1, 32), self.backoff_max_s))


@dataclass(frozen=True, slots=True)
class StartAfter:
    """Start this process after a while."""

    process: str
    delay_s: float


@dataclass(frozen=True, slots=True)
class ProcessState:
    """A process as it is reported: how often it was started again, and why it last died ("" when it did not)."""

    process: str
    phase: Phase
    restarts: int
    reason: str


class _Process:
    __slots__ = ("deaths", "faults", "machine", "reason", "started_at_s", "starts")

    def __init__(self, name: str) -> None:
        self.machine = StateMachine(name, _TABLE, Phase.WAITING)
        self.starts = 0
        self.deaths = 0  # in a row
        self.faults = 0  # those among them that were its own
        self.started_at_s = 0.0
        self.reason = ""


class Supervisor:
    """The processes of one container; times are monotonic seconds."""

    def __init__(self, processes: Iterable[str], policy: RestartPolicy) -> None:
        self._processes = {name: _Process(name) for name in processes}
        self._policy = policy

    def restarts(self, process: str) -> int:
        """How often it was started again so far; before a start: the number that start has."""
        found = self._processes[process]
        waiting = found.machine.state is Phase.WAITING
        return found.starts if waiting else max(0, found.starts - 1)

    def started(self, process: str, now_s: float) -> ProcessState:
        """It runs."""
        found = self._processes[process]
        found.machine.handle(_Event.STARTED)
        found.starts += 1
        found.started_at_s = now_s
        return self.state(process)

    def died(self, process: str, code: int, reason: str, now_s: float) -> StartAfter | None:
        """It ended although nobody asked it to (`code` as `subprocess` gives it); None when it is given up."""
        found = self._processes[process]
        if found.machine.state is Phase.RUNNING and now_s - found.started_at_s >= self._policy.stable_s:
            found.deaths = found.faults = 0
        found.deaths += 1
        found.faults += code not in _FROM_OUTSIDE
        found.reason = reason
        hopeless = code == EXIT_USER_INIT and self._policy.stop_on_failure
        if hopeless or found.faults > self._policy.limit:
            found.machine.handle(_Event.DIED_FOR_GOOD)
            return None
        found.machine.handle(_Event.DIED)
        return StartAfter(process, self._policy.delay_s(found.deaths))

    def stop(self) -> None:
        """From now on nothing is started again; idempotent."""
        for found in self._processes.values():
            found.machine.handle(_Event.STOPPED)

    def may_start(self, process: str) -> bool:
        """Whether the process is still to be started."""
        return self._processes[process].machine.state is Phase.WAITING

    def state(self, process: str) -> ProcessState:
        """The process now."""
        found = self._processes[process]
        return ProcessState(process, found.machine.state, self.restarts(process), found.reason)

    def states(self) -> tuple[ProcessState, ...]:
        """Every process now, in order."""
        return tuple(map(self.state, self._processes))


def ending(code: int) -> str:
    """An exit code of `subprocess` in words."""
    if code >= 0:
        return f"exit code {code}"
    try:
        return f"killed by {signal.Signals(-code).name}"
    except ValueError:
        return f"killed by signal {-code}"
