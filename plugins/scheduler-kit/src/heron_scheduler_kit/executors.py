"""What a supervisor has its containers run by: processes of its own, tasks of a cluster."""

from __future__ import annotations

import selectors
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field

from heron.driver_kit.child_processes import ProcessIdentity
from heron_scheduler_kit.job_folder import JobFolder, JobRecord

__all__ = ["Executors", "Exit", "JobFacts", "Placement"]


@dataclass(frozen=True, slots=True)
class Exit:
    """An executor that ended; `error` is empty for exit code 0. With `own` it was its own failing, no one else's.

    `ran_s` is for how long it ran; None: since it was asked for.
    """

    container_id: int
    error: str
    own: bool = False
    ran_s: float | None = None


@dataclass(frozen=True, slots=True)
class Placement:
    """Where a container is: `up` when its executor runs, with its place; else `waits` says what for, if anything."""

    up: bool
    where: str = ""
    waits: str = ""


@dataclass(frozen=True, slots=True)
class JobFacts:
    """What there is to say of the job as a whole: what it is called where it runs, and pages for people by title."""

    handle: str = ""
    links: Mapping[str, str] = field(default_factory=dict)


class Executors(ABC):
    """The executors of one job. Every call comes from the supervisor's main thread, and only `close` may take long.

    `start`, `terminate` and `kill` ask for something that may come later; `reap` tells what ended, and `placement`
    how a container is. Descriptors of `selector` are registered with a call without arguments as their data.
    """

    tick_s: float | None = None
    """How often `reap` has to be called although no descriptor is ready and no signal came; None: never."""

    def __init__(self, folder: JobFolder, record: JobRecord, selector: selectors.BaseSelector) -> None:
        self.folder = folder
        self.record = record
        self.selector = selector

    def begin(self) -> None:  # noqa: B027 - not every one has something to prepare
        """Called once, before the first `start`. Raises SchedulerError when nothing can be started here."""

    def taken_over(self) -> bool:
        """Whether the command may be told that the job runs; asked until it does.

        Raises:
            SchedulerError: when it cannot run; it is ended then.
        """
        return True

    @abstractmethod
    def start(self, container_id: int, attempt: int) -> None:
        """Has a container run that does not. Raises SchedulerError, OSError or ValueError when that cannot be."""

    @abstractmethod
    def terminate(self, container_id: int) -> None:
        """Asks the executor to end, if there is one; `reap` tells when it has."""

    @abstractmethod
    def kill(self, container_id: int) -> None:
        """Ends the executor and all that it started; `reap` tells when it has."""

    @abstractmethod
    def reap(self) -> tuple[Exit, ...]:
        """Those that have ended since the last call; nothing of them is left."""

    @abstractmethod
    def placement(self, container_id: int) -> Placement:
        """How a container is that was started."""

    @abstractmethod
    def identity(self, container_id: int) -> ProcessIdentity | None:
        """The executor's process, of this machine or another one; None while it is not known."""

    def facts(self) -> JobFacts:
        """What there is to say of the job."""
        return JobFacts()

    @abstractmethod
    def close(self) -> None:
        """Kills what still runs and returns when it is gone (within seconds); the last call."""
