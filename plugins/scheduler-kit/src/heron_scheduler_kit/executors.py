"""The seam between a supervisor and the place where executors run: `Executors`, the contract for scheduler drivers.

A driver with a supervisor implements `Executors`: as child processes of the supervisor (`LocalExecutors` of the
scheduler ``local``) or as tasks of a cluster (`SparkExecutors` of the scheduler ``spark``). The suite
`heron_scheduler_kit.contract.ExecutorsContract` checks an implementation.
"""

from __future__ import annotations

import selectors
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field

from heron.driver_kit.child_processes import ProcessIdentity
from heron.errors import HeronError
from heron_scheduler_kit.job_folder import JobFolder, JobRecord

__all__ = ["Executors", "Exit", "JobFacts", "JobLeftError", "Placement"]


class JobLeftError(HeronError):
    """The containers of the job run on without this supervisor, which must end: another one has them, or will."""


@dataclass(frozen=True, slots=True)
class Exit:
    """The end of an executor. `error` is "" for exit code 0; after `terminate` or `kill` the supervisor ignores it.

    `own` is true when the executor failed by itself: it was not killed, not told to end, and did not lack resources.
    `ran_s` is how long it ran in seconds; None means since `Executors.start`.
    """

    container_id: int
    error: str
    own: bool = False
    ran_s: float | None = None


@dataclass(frozen=True, slots=True)
class Placement:
    """The place of a container. `up` is true when its executor runs, at `where`; else `waits` is the reason, or "".

    `host` is the name that `Scheduler.avoid_hosts` takes, or "".
    """

    up: bool
    where: str = ""
    waits: str = ""
    host: str = ""


@dataclass(frozen=True, slots=True)
class JobFacts:
    """The name of the job where it runs (the id of an application), and the URLs of its pages by title, for people."""

    handle: str = ""
    links: Mapping[str, str] = field(default_factory=dict)


class Executors(ABC):
    """Starts and ends the executors of one job.

    - *Caller*: the main thread of the supervisor makes every call, one at a time.
    - *Time*: a call returns at once. Only `close` may block, for a few seconds.
    - *Order*: `begin` first; then any calls; `close` last. `start` is called for a container only when it does not run.
    - *Effect*: `start`, `terminate` and `kill` request an effect that may come later. `reap` reports each end exactly
      once. `terminate` and `kill` of a container that does not run do nothing.
    - *Waking*: the supervisor sleeps in `selector`. An implementation registers descriptors there, each with a function
      without arguments as its data, which is called when the descriptor is ready. SIGCHLD wakes the supervisor too.
    - *Errors*: SchedulerError for a fault that people can mend; any other error ends the supervisor. After JobLeftError
      from `begin`, `taken_over` or `reap`, the job folder and the run directories stay, and `close` leaves the
      containers alone.
    """

    tick_s: float | None = None
    """Seconds after which `reap` must be called without a descriptor or a signal; None for never."""

    def __init__(self, folder: JobFolder, record: JobRecord, selector: selectors.BaseSelector) -> None:
        self.folder = folder
        self.record = record
        self.selector = selector

    def begin(self) -> None:  # noqa: B027 - an implementation without preparation inherits it
        """Prepare before the first `start`; called once.

        Raises:
            SchedulerError: when no container can be started; the job is then refused.
        """

    def taken_over(self) -> bool:
        """Return whether the command may report that the job runs; called again until it returns true.

        Raises:
            SchedulerError: when the job cannot run; it is then ended.
        """
        return True

    @abstractmethod
    def start(self, container_id: int, attempt: int) -> None:
        """Start a container that does not run, with the spec in ``folder.spec_file(container_id)`` and this attempt.

        Raises:
            SchedulerError, OSError, ValueError: when it cannot be started; the supervisor tries again after a back-off.
        """

    @abstractmethod
    def terminate(self, container_id: int) -> None:
        """Ask the executor to end in order (SIGTERM); `reap` reports its end."""

    @abstractmethod
    def kill(self, container_id: int) -> None:
        """End the executor and every process that it started, at once; `reap` reports its end."""

    @abstractmethod
    def reap(self) -> tuple[Exit, ...]:
        """Return the executors that have ended since the last call; no process of them is left.

        A container must not be reported while its executor may still run: the supervisor would start a second one.
        """

    @abstractmethod
    def placement(self, container_id: int) -> Placement:
        """Return the place of a container; ``Placement(up=False)`` for one that was never started."""

    @abstractmethod
    def identity(self, container_id: int) -> ProcessIdentity | None:
        """Return the process of the executor, on this or another machine; None while it is unknown."""

    def facts(self) -> JobFacts:
        """Return the facts about the whole job."""
        return JobFacts()

    @abstractmethod
    def close(self) -> None:
        """Kill all executors; return when those of this machine are gone. The last call, also after `begin` failed."""
