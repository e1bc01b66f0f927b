"""Contract of the scheduler family: finds room for containers, starts their executors, and keeps them running."""

from __future__ import annotations

import enum
from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from heron.planner.packing_plan import NO_RESOURCE, Resource
from heron.spi.driver import Driver, DriverRef

__all__ = [
    "CAPABILITIES",
    "OLDEST_SPI_VERSION",
    "SPI_VERSION",
    "ContainerSpec",
    "ContainerStatus",
    "Job",
    "JobLink",
    "JobStatus",
    "Scheduler",
    "SchedulerState",
]

SPI_VERSION = 1
OLDEST_SPI_VERSION = 1

CAPABILITIES = frozenset({"attached", "restart", "server", "shared", "update"})
"""``attached``: a job can be tied to the process that scheduled it. ``restart``: one container can be started anew.
``update``: containers can be added to and removed from a running job. ``shared``: every host can ask for a job and end
it, not only the one that scheduled it. A driver without one of these raises SchedulerError there. ``server``: it asks a
server to do it, which may be away."""


@dataclass(frozen=True, slots=True)
class ContainerSpec:
    """All that an executor needs to know; written to a file with mode 0600 whose path is its only argument.

    `attempt` counts the starts of this container, from 1. `run_dir` is on the executor's host, mode 0700, and short:
    a socket path ends at 107 bytes. `settings` are the engine settings (see `heron.kernel.settings`), `hooks`
    the observers of lifecycle events, each ``module:object``; `serializers` are those that components of the topology
    name. The topology's keys are not in it: the executor reads them from the state manager. `required` is what the
    packing plan gives the container; nothing for the topology manager's, which stands in no plan.
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
    serializers: tuple[DriverRef, ...] = ()
    required: Resource = NO_RESOURCE


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
    """One container: its state, how often it was started, and why it last ended or does not run yet ("": no reason).

    `where` is the place that the scheduler gave it, in its own words ("": there is nothing to say); it is for people,
    and two statuses that differ in nothing else are equal.
    """

    container_id: int
    running: bool
    attempts: int
    last_error: str = ""
    where: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class JobStatus:
    """What a scheduler knows of the job of a name: its containers by id, and whose run it is ("": it cannot tell).

    Topologies of two state managers may have one name; a scheduler that both use has room for one of them. `handle` is
    what the job is called where it runs (an application's id), for people.
    """

    state: SchedulerState
    containers: tuple[ContainerStatus, ...] = ()
    topology_id: str = ""
    handle: str = field(default="", compare=False)

    def of(self, topology_id: str) -> JobStatus:
        """What this says of one run ("": whichever it is): ABSENT when the job is another's."""
        fits = not self.topology_id or topology_id in {"", self.topology_id}
        return self if fits else JobStatus(SchedulerState.ABSENT)


class Scheduler(Driver):
    """Runs jobs. Called by commands, from the main thread; two commands may call at the same time for one topology.

    An executor that exits with code 0 has ended its container for good; any other end is followed by a new attempt
    (after a back-off of 0.1 s that doubles to 10 s), unless the job was killed, or it has failed by itself so often
    in a row that the scheduler leaves it down: its status says so, and `restart` starts it again. Source: Heron's
    ``IScheduler`` and ``ILauncher``.
    """

    def check_places(self, others: Sequence[DriverRef], timeout_s: float) -> str:
        """As `check`, and looks where containers run whether the drivers `others` of the profile can be used there.

        By default that is `check` alone, which is enough where containers run on this machine.
        """
        del others
        return self.check(timeout_s)

    @abstractmethod
    def schedule(self, job: Job) -> None:
        """Starts every container and returns when the scheduler has taken the job over (at most 30 s).

        Of calls at the same time for one topology one succeeds. A command that is killed meanwhile leaves a whole job,
        none, or something that `kill` removes.

        Raises:
            SchedulerError: when it cannot be, or a job of that name runs; nothing is left running then. When a server's
                answer was lost the outcome is unknown: `status` tells, and `kill` ends whatever it is.
        """

    @abstractmethod
    def kill(self, topology: str, topology_id: str = "") -> None:
        """Ends the job and returns when nothing of it is left running (at most 15 s); no job is no error.

        With `topology_id` only a job of that run is ended; one of another run goes on, and that is no error either.

        Also ends what a command that was killed left half scheduled. Ends in order what can be, and the rest by force.

        Raises:
            SchedulerError: when something is known to be left, or the scheduler does not answer; names it. It may be
                called again.
        """

    @abstractmethod
    def restart(self, topology: str, container_id: int) -> None:
        """Ends one container and starts it anew, with the next attempt; the others go on. At most 30 s.

        Raises:
            SchedulerError: when the job or container is unknown, or it cannot be ended; then it goes on as it was.
        """

    @abstractmethod
    def update(self, topology: str, add: Sequence[ContainerSpec], remove: Sequence[int]) -> None:
        """Adds and removes containers of a running job, and returns when they are started and gone (at most 30 s).

        Raises:
            SchedulerError: when the job is unknown, an added id is there or a removed one is not, or a container cannot
                be started; what was done before is undone, and the job goes on as it was.
        """

    @abstractmethod
    def status(self, topology: str) -> JobStatus:
        """What the scheduler knows of the job now. At most 10 s, and changes nothing.

        Raises:
            SchedulerError: when the scheduler does not answer: never ABSENT then.
        """

    @abstractmethod
    def links(self, topology: str) -> tuple[JobLink, ...]:
        """Where a person can see the job; none where there is no job. At most 10 s, without secrets in any URL."""

    def follow(self, look: Callable[[], None]) -> None:
        """From now on `look` is called while `schedule` waits, if the driver can: several times a second.

        What it raises ends `schedule` as a failure does, with nothing left running.
        """
        self._look = look

    _look: Callable[[], None] | None = None

    def _waits(self) -> None:
        """For drivers: call it while `schedule` waits."""
        if self._look is not None:
            self._look()
