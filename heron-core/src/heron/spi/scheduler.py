"""Contract of the scheduler family: finds room for containers, starts their executors, and keeps them running."""

from __future__ import annotations

import enum
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field

from heron.spi.driver import Driver, DriverRef

__all__ = [
    "CAPABILITIES",
    "SPI_VERSION",
    "ContainerSpec",
    "ContainerStatus",
    "Job",
    "JobLink",
    "Scheduler",
    "SchedulerState",
]

SPI_VERSION = 1

CAPABILITIES = frozenset({"attached", "restart", "shared", "update"})
"""The flags of this family: a job can be tied to the process that scheduled it; one container can be started anew;
containers can be added to and removed from a running job; every host can ask for a job and end it, not only the one
that scheduled it (``shared``). A driver without a flag raises SchedulerError there."""


@dataclass(frozen=True, slots=True)
class ContainerSpec:
    """All that an executor needs to know; written to a file with mode 0600 whose path is its only argument.

    `attempt` counts the starts of this container, from 1. `run_dir` is on the executor's host, mode 0700, and short:
    a socket path ends at 107 bytes. `settings` are the engine settings (see `heron.kernel.settings`), `hooks`
    the observers of lifecycle events, each ``module:object``. The topology's keys are not in it: the executor reads
    them from the state manager.
    """

    topology: str
    topology_id: str
    container_id: int
    attempt: int
    run_dir: str
    log_dir: str
    package_uri: str
    statemgr: DriverRef
    uploader: DriverRef
    sinks: tuple[DriverRef, ...] = ()
    settings: dict[str, object] = field(default_factory=dict)
    hooks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Job:
    """A topology to be run: one spec per container, container 0 (the topology manager's) included.

    An `attached` job ends when the process that scheduled it ends, however that happens; another one survives it.
    """

    topology: str
    topology_id: str
    containers: tuple[ContainerSpec, ...]
    attached: bool = False


@dataclass(frozen=True, slots=True)
class JobLink:
    """A page or file where a person can see the job: a title and a URL or path."""

    title: str
    url: str


class SchedulerState(enum.Enum):
    """What became of the job, as far as the scheduler knows."""

    RUNNING = "running"
    ENDED = "ended"
    FAILED = "failed"
    ABSENT = "absent"


@dataclass(frozen=True, slots=True)
class ContainerStatus:
    """One container: its state, how often it was started, and why it last ended ("" when it did not)."""

    container_id: int
    running: bool
    attempts: int
    last_error: str = ""


class Scheduler(Driver):
    """Runs jobs. Called by commands, from the main thread. Source: Heron's ``IScheduler`` and ``ILauncher``.

    An executor that exits with code 0 has ended its container for good; any other end is followed by a new attempt
    (after a back-off of 0.1 s that doubles to 10 s), unless the job was killed.
    """

    @abstractmethod
    def schedule(self, job: Job) -> None:
        """Starts every container and returns when the scheduler has taken the job over (at most 30 s).

        Raises:
            SchedulerError: when it cannot be; nothing is left running then.
        """

    @abstractmethod
    def kill(self, topology: str) -> None:
        """Ends the job and returns when nothing of it is left running (at most 15 s); no job is no error.

        Raises:
            SchedulerError: when something is known to be left; names it.
        """

    @abstractmethod
    def restart(self, topology: str, container_id: int) -> None:
        """Ends one container and starts it anew; the others go on.

        Raises:
            SchedulerError: when the job or container is unknown.
        """

    @abstractmethod
    def update(self, topology: str, add: Sequence[ContainerSpec], remove: Sequence[int]) -> None:
        """Adds and removes containers of a running job; what was done before a failure is undone."""

    @abstractmethod
    def status(self, topology: str) -> tuple[SchedulerState, tuple[ContainerStatus, ...]]:
        """What the scheduler knows of the job now."""

    @abstractmethod
    def links(self, topology: str) -> tuple[JobLink, ...]:
        """Where a person can see the job."""
