"""A scheduler over a cluster that keeps containers running: the contract, in terms of `Cluster` and records."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from heron.clock import monotonic_s
from heron.driver_kit.large_values import open_statemgr
from heron.driver_kit.private_files import make_private_dir
from heron.errors import HeronError, SchedulerError
from heron.spi.scheduler import (
    ContainerSpec,
    Job,
    JobLink,
    JobStatus,
    Scheduler,
    SchedulerState,
)
from heron.spi.statemgr import StateManager
from heron_scheduler_kit.managed.cluster import Cluster, JobChange, JobExistsError, StoredJob
from heron_scheduler_kit.managed.container_change import (
    ContainerChange,
    find_running,
    is_up,
    launch_files,
    why_not_up,
)
from heron_scheduler_kit.managed.container_life import restarted
from heron_scheduler_kit.managed.container_records import ContainerPhase, ContainerRecord, ContainerRecords
from heron_scheduler_kit.managed.container_state import ABSENT, OVER, container_status
from heron_scheduler_kit.managed.managed_job import ManagedJob
from heron_scheduler_kit.managed.managed_options import ManagedOptions

__all__ = ["ManagedScheduler"]

_NAME = re.compile(r"[A-Za-z0-9_-]{1,200}")
_KILL_S = 15.0  # of the contract
_POLL_S = 0.1


class ManagedScheduler(Scheduler):
    """Runs jobs on a cluster. Everything it knows is in the cluster and in the state manager.

    A driver sets the class attributes of a driver, and writes `open`, which makes the `Cluster`.
    """

    def __init__(self, options: ManagedOptions, cluster: Cluster) -> None:
        self._options = options
        self._cluster = cluster
        self._statemgr: StateManager | None = None

    def use_state(self, statemgr: StateManager) -> None:
        self._statemgr = statemgr
        self._cluster.use_state(statemgr)

    def avoid_hosts(self, hosts: Sequence[str]) -> None:
        if "avoid" not in self.capabilities:
            super().avoid_hosts(hosts)
        self._cluster.avoided = frozenset(hosts)

    def check(self, timeout_s: float) -> str:
        return self._cluster.check(timeout_s)

    def schedule(self, job: Job) -> None:
        _check_name(job.topology)
        managed = ManagedJob.of(job, self._options, self._cluster.place)
        if job.attached:
            msg = (
                f"topology {job.topology!r}: containers of a cluster do not end with the command that started them; "
                "use `heron submit`"
            )
            raise SchedulerError(msg)
        _make_log_dirs(job.containers)
        self._free_name(job.topology)
        try:
            self._cluster.reserve(managed)
        except JobExistsError as error:
            raise _running_already(job.topology) from error
        except BaseException:
            self._kill_quietly(job)  # the answer may be lost
            raise
        try:
            with _records_of(job.containers[0]) as records:
                records.add(job.topology, managed.container_ids)
            self._waits()
            self._cluster.apply(JobChange(None, managed, launch_files(managed, job.containers, self._options)))
            self._waits()
            if self._cluster.find(job.topology) is None:
                self._cluster.end(job.topology)
                msg = f"topology {job.topology!r} was killed while it was being started"
                raise SchedulerError(msg)
        except BaseException:
            self._kill_quietly(job)
            raise

    def kill(self, topology: str, topology_id: str = "") -> None:
        _check_name(topology)
        stored = self._cluster.find(topology)
        if stored is None:
            if topology_id and self._statemgr is not None:
                ContainerRecords(self._statemgr, topology_id).remove()
            return
        if topology_id and stored.job.topology_id != topology_id:
            return
        deadline_s = monotonic_s() + _KILL_S
        self._cluster.end(topology)
        if not self._poll(lambda: not self._cluster.remains(topology), deadline_s):
            names = ", ".join(self._cluster.remains(topology))
            remedy = f"see {stored.handle}, and kill it again"
            msg = f"topology {topology!r}: not ended after {_KILL_S:g} s: {names}; {remedy}"
            raise SchedulerError(msg)
        if self._statemgr is not None:
            ContainerRecords(self._statemgr, stored.job.topology_id).remove()
        self._cluster.release(topology)

    def restart(self, topology: str, container_id: int) -> None:
        job = self._running(topology).job
        job.check_has([container_id])
        records = self._records(job)
        place = job.request(container_id).place
        if self._cluster.avoided and self._cluster.observe(job).get(place, ABSENT).host in self._cluster.avoided:
            self._move(job, container_id, records)
            return
        before = records.change(container_id, restarted)
        if before is None:
            missing = "has no record in the state manager"
            msg = f"topology {topology!r}: container {container_id} {missing}; kill the topology, and submit it"
            raise SchedulerError(msg)
        deadline_s = self._deadline_s()

        def is_back() -> bool:
            return is_up(records, container_id, before.attempts)

        if not self._poll(is_back, deadline_s - self._options.start_s / 2):
            self._cluster.restart(job, place)
        if not self._poll(is_back, deadline_s):
            why = why_not_up(self._cluster, records, job, container_id)
            msg = f"container {container_id} is not back after {self._options.start_s:g} s: {why}"
            raise SchedulerError(msg)

    def _move(self, job: ManagedJob, container_id: int, records: ContainerRecords) -> None:
        """Start a container on another host; if none takes it in time, let it start anywhere."""
        record = records.get(container_id)
        attempts = record.attempts if record else 0
        place = job.request(container_id).place
        self._cluster.move(job, place)
        if self._poll(lambda: is_up(records, container_id, attempts), self._deadline_s()):
            return
        why = why_not_up(self._cluster, records, job, container_id)
        avoided, self._cluster.avoided = self._cluster.avoided, frozenset()
        self._cluster.move(job, place)
        hosts = ", ".join(sorted(avoided))
        msg = f"container {container_id} finds no host besides {hosts} within {self._options.start_s:g} s: {why}"
        raise SchedulerError(msg)

    def update(self, topology: str, add: Sequence[ContainerSpec], remove: Sequence[int]) -> None:
        deadline_s = self._deadline_s()
        job = self._running(topology).job
        job.check_has(remove)
        change = ContainerChange(self._cluster, self._options, self._records(job), self._poll)
        if add:
            job = change.add(topology, add, deadline_s)
        if remove:
            change.remove(job, remove)

    def status(self, topology: str) -> JobStatus:
        _check_name(topology)
        stored = self._cluster.find(topology)
        if stored is None:
            return JobStatus(SchedulerState.ABSENT)
        job = stored.job
        places = self._cluster.observe(job)
        records = self._records(job)
        known = {each: records.get(each) for each in job.container_ids}
        containers = tuple(
            container_status(each.container_id, known[each.container_id], places.get(each.place, ABSENT))
            for each in job.containers
        )
        state = SchedulerState.ENDED if _is_over(known.values()) else SchedulerState.RUNNING
        return JobStatus(state, containers, job.topology_id, stored.handle)

    def links(self, topology: str) -> tuple[JobLink, ...]:
        _check_name(topology)
        stored = self._cluster.find(topology)
        return self._cluster.links(stored) if stored else ()

    def output(self, topology: str, container_id: int, lines: int) -> Sequence[str]:
        return self._cluster.output(self._running(topology).job, container_id, lines)

    def _running(self, topology: str) -> StoredJob:
        _check_name(topology)
        return find_running(self._cluster, topology)

    def _free_name(self, topology: str) -> None:
        """Remove a job that is over. Raises SchedulerError when the job of that name is not over."""
        stored = self._cluster.find(topology)
        if stored is None:
            return
        records = None if self._statemgr is None else ContainerRecords(self._statemgr, stored.job.topology_id)
        if records is None or not _is_over([records.get(each) for each in stored.job.container_ids]):
            raise _running_already(topology)
        self.kill(topology, stored.job.topology_id)

    def _kill_quietly(self, job: Job) -> None:
        with suppress(HeronError):  # the first error says more; `kill` repeats this one
            self.kill(job.topology, job.topology_id)

    def _records(self, job: ManagedJob) -> ContainerRecords:
        if self._statemgr is None:
            msg = f"topology {job.topology!r}: a managed scheduler needs the state manager of its profile (use_state)"
            raise SchedulerError(msg)
        return ContainerRecords(self._statemgr, job.topology_id)

    def _deadline_s(self) -> float:
        return monotonic_s() + self._options.start_s

    def _poll(self, done: Callable[[], bool], deadline_s: float) -> bool:
        pause = threading.Event()
        while not done():
            if monotonic_s() >= deadline_s:
                return False
            self._waits()
            pause.wait(_POLL_S)
        return True


def _is_over(records: Iterable[ContainerRecord | None]) -> bool:
    """Return whether no container runs or will run again, as `Supervision.over` does."""
    phases = {each.phase if each else ContainerPhase.WAITING for each in records}
    return phases <= OVER or (ContainerPhase.ENDED in phases and phases <= OVER | {ContainerPhase.GIVEN_UP})


@contextmanager
def _records_of(spec: ContainerSpec) -> Iterator[ContainerRecords]:
    statemgr = open_statemgr(spec.statemgr)
    try:
        yield ContainerRecords(statemgr, spec.topology_id)
    finally:
        statemgr.close()


def _check_name(topology: str) -> None:
    if not _NAME.fullmatch(topology):
        msg = f"{topology[:220]!r} is not a topology name: use 1 to 200 of the characters A-Z a-z 0-9 _ -"
        raise SchedulerError(msg)


def _make_log_dirs(specs: Sequence[ContainerSpec]) -> None:
    """Make the log folder of the run, where commands of this machine keep what they fetch."""
    for folder in {each.log_dir for each in specs}:
        try:
            make_private_dir(Path(folder))
        except OSError as error:
            msg = f"the log folder {folder} cannot be created: {error}; set run.log_dir to another folder"
            raise SchedulerError(msg) from error


def _running_already(topology: str) -> SchedulerError:
    return SchedulerError(f"topology {topology!r} is running already; kill it first")
