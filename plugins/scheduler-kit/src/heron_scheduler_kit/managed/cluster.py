"""The seam between a managed scheduler and one kind of cluster: `Cluster`, the contract for drivers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from heron.errors import HostsNotAvoidedError, SchedulerError
from heron.spi.scheduler import JobLink
from heron.spi.statemgr import StateManager
from heron_scheduler_kit.managed.managed_job import ManagedJob

__all__ = ["Cluster", "JobChange", "JobChangedError", "JobExistsError", "Observation", "StoredJob"]


class JobExistsError(SchedulerError):
    """The cluster has a job of that topology already."""


class JobChangedError(SchedulerError):
    """Another command has changed the stored job meanwhile; nothing was changed."""


@dataclass(frozen=True, slots=True)
class StoredJob:
    """A job as the cluster stores it. `version` changes with each change of it. `handle` is its name for people."""

    job: ManagedJob
    version: str
    handle: str = ""


@dataclass(frozen=True, slots=True)
class JobChange:
    """A change of the places of a job; all other places go on untouched.

    `files` has the launch files of the places that are in `after` only. `stuck` are the places in `before` only whose
    launchers have not ended their executors: the cluster must end their processes. `before` is None for a new job.
    """

    before: ManagedJob | None
    after: ManagedJob
    files: Mapping[str, bytes]
    stuck: frozenset[str] = frozenset()

    @property
    def removed(self) -> frozenset[str]:
        """The places that the change removes."""
        return self.before.places - self.after.places if self.before else frozenset()


@dataclass(frozen=True, slots=True)
class Observation:
    """A place as the cluster sees it. `up` is whether its launcher runs, at `where`.

    `reason` is why it does not run now, or why it last ended, in the cluster's words; "" without one. `host` is the
    name of its host that `Cluster.avoided` takes; "" if the cluster cannot avoid hosts, or does not say.
    """

    up: bool
    where: str = ""
    reason: str = ""
    host: str = ""


class Cluster(ABC):
    """Translates jobs into the objects of one cluster.

    - *Caller*: the main thread of a command, one call at a time. Other commands may call at the same time elsewhere.
    - *Time*: a call takes at most 5 s, and raises when the cluster does not answer.
    - *Errors*: SchedulerError with the cluster's own words, the object and the remedy. After a lost answer the outcome
      is unknown; the caller repeats the call or ends the job.
    - *Launchers*: each place runs ``PYTHON -P -m heron_scheduler_kit.managed.launcher LAUNCHFILE``. It gets SIGTERM
      before its end, and `ManagedOptions.end_s` seconds. The cluster starts it again whenever it ends. Only the
      container, and users who may read secrets in the cluster, can read the launch file.
    """

    avoided: frozenset[str] = frozenset()
    """The hosts on which `apply` and `move` start no place; the scheduler sets it. See `Scheduler.avoid_hosts`."""

    def use_state(self, statemgr: StateManager) -> None:
        """Take the open state manager of the profile, before all other calls but `check`; the default ignores it."""
        del statemgr

    @abstractmethod
    def check(self, timeout_s: float) -> str:
        """Do what `heron.spi.driver.Driver.check` does: say in one line whether jobs can run there."""

    def place(self, job: ManagedJob, container_id: int) -> str:
        """Return the place for a container that joins the job; the default is its id."""
        del job
        return str(container_id)

    @abstractmethod
    def find(self, topology: str) -> StoredJob | None:
        """Return the stored job of a topology; None when its name is free."""

    @abstractmethod
    def reserve(self, job: ManagedJob) -> None:
        """Store a new job without starting anything.

        Raises:
            JobExistsError: when a job of that topology is stored; of several callers exactly one succeeds.
        """

    @abstractmethod
    def replace(self, job: ManagedJob, version: str) -> None:
        """Store a changed job without changing its places.

        Raises:
            JobChangedError: when the stored job does not have that version, or is gone.
        """

    @abstractmethod
    def apply(self, change: JobChange) -> None:
        """Order what the stored job needs: new places with their launch files, the end of removed places.

        It returns when the cluster has accepted it. It may be called again with the same change.
        """

    def restart(self, job: ManagedJob, place: str) -> None:
        """Order the end of the processes of a place, which the cluster starts again; the default does nothing.

        `heron restart` asks for it when the launcher does not follow: it hangs, or the cluster waits before its start.
        """
        del job, place

    def move(self, job: ManagedJob, place: str) -> None:
        """Order that a place starts again on a host that is not in `avoided`, and that its present processes end.

        Its launch file stays. A scheduler with the flag ``avoid`` asks for it.
        """
        msg = f"the cluster cannot move {place} of topology {job.topology!r} to another host"
        raise HostsNotAvoidedError(msg)

    @abstractmethod
    def observe(self, job: ManagedJob) -> Mapping[str, Observation]:
        """Return the places that exist in the cluster, also those that are ending or cannot start."""

    @abstractmethod
    def end(self, topology: str) -> None:
        """Order the end of all places of a topology and the removal of their launch files, also of incomplete jobs.

        The stored job stays. It may be called again.
        """

    @abstractmethod
    def remains(self, topology: str) -> Sequence[str]:
        """Return the names of what still runs of a topology after `end`."""

    @abstractmethod
    def release(self, topology: str) -> None:
        """Remove the stored job, when nothing of it runs. It may be called again."""

    @abstractmethod
    def links(self, stored: StoredJob) -> tuple[JobLink, ...]:
        """Return pages and commands that show the job, without secrets."""

    @abstractmethod
    def output(self, job: ManagedJob, container_id: int, lines: int) -> Sequence[str]:
        """Return the last lines that the launcher of a container has printed, and that the cluster still has."""
