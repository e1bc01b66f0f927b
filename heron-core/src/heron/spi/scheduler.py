"""Contract of the scheduler family, which places containers, starts their executors and keeps them running."""

from __future__ import annotations

import enum
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from heron.errors import HostsNotAvoidedError, SchedulerError
from heron.planner.packing_plan import NO_RESOURCE, Resource
from heron.spi.driver import Driver, DriverRef
from heron.spi.statemgr import StateManager

__all__ = [
    "CAPABILITIES",
    "OLDEST_SPI_VERSION",
    "SPI_VERSION",
    "ContainerSpec",
    "ContainerStatus",
    "Job",
    "JobLink",
    "JobStatus",
    "PlannedRun",
    "Scheduler",
    "SchedulerState",
    "ServiceSpec",
]

SPI_VERSION = 1
OLDEST_SPI_VERSION = 1

CAPABILITIES = frozenset({"attached", "avoid", "manifests", "output", "restart", "server", "shared", "update"})
"""``attached``: a job can end with the process that scheduled it. ``restart``: one container can be restarted.
``update``: containers can be added to a running job and removed from it. ``shared``: every host can query and end a
job, not only the host that scheduled it. A driver without one of these flags raises SchedulerError for that request.
``server``: a server does the work, and it may be away. ``output``: the scheduler keeps what containers print.
``manifests``: a job can be written as documents for the tools of the system.
``avoid``: containers can be kept away from hosts."""


@dataclass(frozen=True, slots=True)
class ServiceSpec:
    """A process that container 0 runs besides those of the engine: ``python -m MODULE SPECFILE``.

    It belongs to another distribution, which must be installed on the host of the container. `drivers` and `options`
    are for the process alone. It gets the read-only key of the topology, or with `control` the key that may change the
    topology. A service that fails is restarted for ever, and never ends the topology.
    """

    name: str
    module: str
    control: bool = False
    drivers: tuple[DriverRef, ...] = ()
    options: dict[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ContainerSpec:
    """Everything that an executor needs, written to a file of mode 0600 whose path is its only argument.

    `attempt` counts the starts of this container, from 1. `run_dir` is on the executor's host, has mode 0700, and is
    short, because a socket path has at most 107 bytes. `settings` are the engine settings (`heron.kernel.settings`).
    `hooks` are the observers of lifecycle events, each ``module:object``. `serializers` are those that components of
    the topology name. The topology's keys are not included: the executor reads them from the state manager. `required`
    are the resources in the packing plan; zero for container 0, which is not in the plan. `checkpoint` is the store for
    a topology that takes checkpoints, else None. `state_backends` are those that components name. Only container 0 has
    `services`.
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
    checkpoint: DriverRef | None = None
    state_backends: tuple[DriverRef, ...] = ()
    services: tuple[ServiceSpec, ...] = ()


@dataclass(frozen=True, slots=True)
class Job:
    """A topology to run: one spec per container, including container 0 with the topology manager.

    An `attached` job ends when the process that scheduled it ends, for any reason; other jobs survive that process.
    `owner`, `role` and `env` are labels for people: the user who submitted it, and what that user chose.
    """

    topology: str
    topology_id: str
    containers: tuple[ContainerSpec, ...]
    attached: bool = False
    owner: str = ""
    role: str = ""
    env: str = ""


@dataclass(frozen=True, slots=True)
class PlannedRun:
    """What a submission stores before its scheduler starts containers, for a job that is made from documents.

    `nodes` are values by `NodeKind.value`, with EXECUTION_STATE. `package` is not uploaded yet, so the specs of
    `containers` have no `package_uri`. `heron.driver_kit.planned_runs.begin_run` stores both.
    """

    topology: str
    containers: tuple[int, ...]
    nodes: dict[str, bytes]
    package: bytes


@dataclass(frozen=True, slots=True)
class JobLink:
    """A page or file where a person can see the job: a title and a URL or path."""

    title: str
    url: str


class SchedulerState(enum.Enum):
    """The state of a job in the scheduler."""

    RUNNING = "running"
    ENDED = "ended"
    FAILED = "failed"
    ABSENT = "absent"


@dataclass(frozen=True, slots=True)
class ContainerStatus:
    """One container: its state, its number of starts, and why it last ended or does not run yet ("": no reason).

    `where` is its place in the scheduler's own words, or ""; it is for people and does not count in comparisons. `host`
    is the name of its host that `Scheduler.avoid_hosts` takes, or "" while it has none or the driver cannot tell.
    """

    container_id: int
    running: bool
    attempts: int
    last_error: str = ""
    where: str = field(default="", compare=False)
    host: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class JobStatus:
    """The job of a topology in the scheduler: its containers, and the id of its run ("": unknown).

    Topologies of two state managers may have the same name; a scheduler that both use can run only one of them.
    `handle` is the name of the job where it runs (the id of an application), for people.
    """

    state: SchedulerState
    containers: tuple[ContainerStatus, ...] = ()
    topology_id: str = ""
    handle: str = field(default="", compare=False)

    def of(self, topology_id: str) -> JobStatus:
        """Return the status for one run ("": any run): ABSENT when the job belongs to another run."""
        fits = not self.topology_id or topology_id in {"", self.topology_id}
        return self if fits else JobStatus(SchedulerState.ABSENT)


class Scheduler(Driver):
    """Runs jobs. Commands call it from the main thread; two commands may call it at the same time for one topology.

    An executor that exits with code 0 has ended its container for good. After any other end the scheduler starts it
    again, with a back-off of 0.1 s that doubles to 10 s. Exceptions: the job was killed, or the container
    reached the scheduler's limit of failures in a row. Then it is given up, its status has the reason, and `restart`
    starts it again.
    Source: Heron's ``IScheduler`` and ``ILauncher``.
    """

    def check_places(self, others: Sequence[DriverRef], timeout_s: float) -> str:
        """Do what `check` does, and check on the machines of the containers that the drivers `others` work there.

        The default is `check` alone, which is enough for a scheduler of this machine.
        """
        del others
        return self.check(timeout_s)

    @abstractmethod
    def schedule(self, job: Job) -> None:
        """Start every container and return when the scheduler has accepted the job (at most 30 s).

        Of several calls at the same time for one topology, one succeeds. A command that is killed meanwhile leaves a
        complete job, no job, or remains that `kill` removes.

        Raises:
            SchedulerError: when the job cannot be started, or a job of that name runs; then nothing of it is left
                running. When the answer of a server was lost, the outcome is unknown: `status` reports it and `kill`
                ends it.
        """

    @abstractmethod
    def kill(self, topology: str, topology_id: str = "") -> None:
        """End the job and return when nothing of it is left running (at most 15 s). A missing job is not an error.

        With `topology_id`, only a job of that run is ended; a job of another run continues, which is not an error.

        It also ends the remains of a `schedule` that was interrupted. It ends processes in order where it can, and the
        others by force.

        Raises:
            SchedulerError: when a process is known to be left, or the scheduler does not answer; names it. The call may
                be repeated.
        """

    @abstractmethod
    def restart(self, topology: str, container_id: int) -> None:
        """End one container and start it again with the next attempt (at most 30 s); the others continue.

        If it runs on a host of `avoid_hosts`, it starts again on another one, or the call raises SchedulerError.

        Raises:
            SchedulerError: when the job or container is unknown, or the container cannot be ended; then it continues.
        """

    @abstractmethod
    def update(self, topology: str, add: Sequence[ContainerSpec], remove: Sequence[int]) -> None:
        """Add and remove containers of a running job; return when they are started and ended (at most 30 s).

        Raises:
            SchedulerError: when the job is unknown, an added container exists, a removed container does not exist, or a
                container cannot be started. Completed steps are undone, and the job continues unchanged.
        """

    @abstractmethod
    def status(self, topology: str) -> JobStatus:
        """Return the current status of the job (at most 10 s); changes nothing.

        Raises:
            SchedulerError: when the scheduler does not answer. The state ABSENT means that the job does not exist.
        """

    @abstractmethod
    def links(self, topology: str) -> tuple[JobLink, ...]:
        """Return pages that show the job, without secrets in the URLs (at most 10 s); none without a job."""

    def output(self, topology: str, container_id: int, lines: int) -> Sequence[str]:
        """Return the last lines that a container has printed (at most 10 s). The flag ``output`` asks for it.

        Lines of the engine are JSON; every other line has the name of its log in front: ``NAME | TEXT``.

        Raises:
            SchedulerError: when the scheduler does not keep them, does not answer, or has no such container.
        """
        msg = (
            f"the scheduler keeps no output of container {container_id} of topology {topology!r}, at most {lines} lines"
        )
        raise SchedulerError(msg)

    def manifests(self, job: Job, planned: PlannedRun) -> Sequence[Mapping[str, object]]:
        """Return the documents from which the tools of the system make the job; changes nothing.

        They have secrets. Container 0 stores `planned` before it starts. The flag ``manifests`` asks for it.

        Raises:
            SchedulerError: when the scheduler has none.
        """
        msg = f"the scheduler of topology {job.topology!r} has no documents for containers {planned.containers}"
        raise SchedulerError(msg)

    def avoid_hosts(self, hosts: Sequence[str]) -> None:
        """Let `schedule`, `update` and `restart` start containers on none of these hosts from now on.

        The names are those of `ContainerStatus.host`; a name that the scheduler does not know has no effect. They
        replace those of an earlier call. The call sends no request, and containers that run stay where they are. A
        container that the scheduler starts again by itself may keep away from the hosts of its last start only. The
        flag ``avoid`` asks for it.

        Raises:
            HostsNotAvoidedError: when the scheduler, or its section of the profile, has no way to say so.
        """
        msg = (
            f"the scheduler {type(self).__name__} cannot keep containers away from {', '.join(hosts)}; it has no hosts "
            "to choose, or no way to say so"
        )
        raise HostsNotAvoidedError(msg)

    def use_state(self, statemgr: StateManager) -> None:
        """Give the scheduler the state manager of its profile, which its owner closes after the last call.

        Commands call this once, before all other calls. The default ignores it.
        """

    def follow(self, look: Callable[[], None]) -> None:
        """Let `schedule` call `look` several times a second while it waits, if the driver supports it.

        If `look` raises, `schedule` ends as after a failure: nothing is left running.
        """
        self._look = look

    _look: Callable[[], None] | None = None

    def _waits(self) -> None:
        """Call the function that `follow` got. A driver calls this while `schedule` waits."""
        if self._look is not None:
            self._look()
