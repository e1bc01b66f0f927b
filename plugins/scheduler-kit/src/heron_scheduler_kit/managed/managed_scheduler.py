"""A scheduler over a cluster that keeps containers running: the contract, in terms of `Cluster` and records."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path

from heron.clock import monotonic_s
from heron.driver_kit.container_records import ContainerPhase, ContainerRecord, ContainerRecords
from heron.driver_kit.large_values import open_statemgr
from heron.driver_kit.private_files import make_private_dir
from heron.errors import HeronError, SchedulerError
from heron.spi.scheduler import (
    ContainerSpec,
    ContainerStatus,
    Job,
    JobLink,
    JobStatus,
    Scheduler,
    SchedulerState,
)
from heron.spi.statemgr import StateManager
from heron_scheduler_kit.managed.cluster import (
    Cluster,
    JobChange,
    JobChangedError,
    JobExistsError,
    Observation,
    StoredJob,
)
from heron_scheduler_kit.managed.container_life import removed, restarted
from heron_scheduler_kit.managed.launch_file import encode_launch_file
from heron_scheduler_kit.managed.managed_job import ManagedJob
from heron_scheduler_kit.managed.managed_options import ManagedOptions

__all__ = ["ManagedScheduler", "container_status"]

_NAME = re.compile(r"[A-Za-z0-9_-]{1,200}")
_KILL_S = 15.0  # of the contract
_POLL_S = 0.1
_OVER = frozenset({ContainerPhase.ENDED, ContainerPhase.REMOVED})
_ABSENT = Observation(up=False)


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

    def check(self, timeout_s: float) -> str:
        return self._cluster.check(timeout_s)

    def schedule(self, job: Job) -> None:
        _check_name(job.topology)
        managed = ManagedJob.of(job, self._options, self._cluster.slot)
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
            self._cluster.apply(JobChange(None, managed, self._files(managed, job.containers)))
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
        left = self._poll(lambda: not self._cluster.remains(topology), deadline_s)
        if not left:
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
        before = records.change(container_id, restarted)
        if before is None:
            missing = "has no record in the state manager"
            msg = f"topology {topology!r}: container {container_id} {missing}; kill the topology, and submit it"
            raise SchedulerError(msg)
        back = self._poll(lambda: self._is_up(job, container_id, before.attempts), self._deadline_s())
        if not back:
            why = self._why(job, container_id)
            msg = f"container {container_id} is not back after {self._options.start_s:g} s: {why}"
            raise SchedulerError(msg)

    def update(self, topology: str, add: Sequence[ContainerSpec], remove: Sequence[int]) -> None:
        deadline_s = self._deadline_s()
        job = self._running(topology).job
        job.check_has(remove)
        if add:
            job = self._add(topology, add, deadline_s)
        if remove:
            self._remove(job, remove)

    def status(self, topology: str) -> JobStatus:
        _check_name(topology)
        stored = self._cluster.find(topology)
        if stored is None:
            return JobStatus(SchedulerState.ABSENT)
        job = stored.job
        slots = self._cluster.observe(job)
        records = self._records(job)
        known = {each: records.get(each) for each in job.container_ids}
        containers = tuple(
            container_status(each.container_id, known[each.container_id], slots.get(each.slot, _ABSENT))
            for each in job.containers
        )
        state = SchedulerState.ENDED if _is_over(known.values()) else SchedulerState.RUNNING
        return JobStatus(state, containers, job.topology_id, stored.handle)

    def links(self, topology: str) -> tuple[JobLink, ...]:
        _check_name(topology)
        stored = self._cluster.find(topology)
        return self._cluster.links(stored) if stored else ()

    def _add(self, topology: str, add: Sequence[ContainerSpec], deadline_s: float) -> ManagedJob:
        """Add containers and wait until they run; remove them again when one does not."""
        before, after = self._store(topology, lambda job: job.with_added(add, self._options, self._cluster.slot))
        ids = [each.container_id for each in add]
        try:
            self._records(after).add(topology, ids)
            self._cluster.apply(JobChange(before, after, self._files(after, add)))
            self._wait_for_added(after, ids, deadline_s)
        except BaseException:
            with suppress(HeronError):  # the first error says more, and the next update removes them
                self._remove(after, ids)
            raise
        return after

    def _wait_for_added(self, job: ManagedJob, ids: Sequence[int], deadline_s: float) -> None:
        records = self._records(job)
        for each in ids:

            def settled(container_id: int = each) -> bool:
                record = records.get(container_id)
                return bool(record and record.error) or self._is_up(job, container_id, 0)

            self._poll(settled, deadline_s)
            record = records.get(each)
            if record is None or record.error or not self._is_up(job, each, 0):
                msg = f"container {each} does not start: {self._why(job, each)}"
                raise SchedulerError(msg)

    def _remove(self, job: ManagedJob, ids: Sequence[int]) -> None:
        """End containers in order by their records, then their slots."""
        records = self._records(job)
        for each in ids:
            records.change(each, lambda record: replace(record, wanted=False))
        slots = self._cluster.observe(job)
        places = {each: job.request(each).slot for each in ids}

        def gone(container_id: int) -> bool:
            record = records.get(container_id)
            return record is None or _is_removed(record) or not slots.get(places[container_id], _ABSENT).up

        deadline_s = monotonic_s() + self._options.end_s
        self._poll(lambda: all(map(gone, ids)), deadline_s)
        kept = {each: records.get(each) for each in ids}
        stuck = frozenset(places[each] for each, record in kept.items() if record and not _is_removed(record))
        before, after = self._store(job.topology, lambda now: now.without(ids))
        self._cluster.apply(JobChange(before, after, {}, stuck))
        for each in ids:
            records.change(each, removed)
        if stuck and not self._poll(lambda: not self._up(before, stuck), monotonic_s() + self._options.end_s):
            msg = f"containers {sorted(ids)} of topology {job.topology!r} do not end: {', '.join(sorted(stuck))}"
            raise SchedulerError(msg)

    def _up(self, job: ManagedJob, slots: Collection[str]) -> bool:
        seen = self._cluster.observe(job)
        return any(seen.get(each, _ABSENT).up for each in slots)

    def _store(self, topology: str, changed: Callable[[ManagedJob], ManagedJob]) -> tuple[ManagedJob, ManagedJob]:
        """Change the stored job; return it as it was and as it is."""
        while True:
            stored = self._running(topology)
            after = changed(stored.job)
            try:
                self._cluster.replace(after, stored.version)
            except JobChangedError:
                continue
            return stored.job, after

    def _running(self, topology: str) -> StoredJob:
        _check_name(topology)
        stored = self._cluster.find(topology)
        if stored is None:
            msg = f"topology {topology!r} does not run there; `heron list` shows what runs"
            raise SchedulerError(msg)
        return stored

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

    def _files(self, job: ManagedJob, specs: Sequence[ContainerSpec]) -> dict[str, bytes]:
        return {job.request(each.container_id).slot: encode_launch_file(each, self._options) for each in specs}

    def _is_up(self, job: ManagedJob, container_id: int, attempts: int) -> bool:
        """Return whether a later attempt than number `attempts` runs, or has ended for good."""
        record = self._records(job).get(container_id)
        running = record is not None and record.phase in {ContainerPhase.RUNNING, ContainerPhase.ENDED}
        return record is not None and running and record.attempts > attempts

    def _why(self, job: ManagedJob, container_id: int) -> str:
        slot = self._cluster.observe(job).get(job.request(container_id).slot, _ABSENT)
        record = self._records(job).get(container_id)
        reason = container_status(container_id, record, slot).last_error
        return reason or "the cluster is still starting it"

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


def container_status(container_id: int, record: ContainerRecord | None, slot: Observation) -> ContainerStatus:
    """Return the status of a container from its record and its slot. Pure.

    The cluster's reason is shown while the slot does not run, and when only the cluster saw the last end.
    """
    known = record or ContainerRecord("", "", container_id)
    running = known.phase is ContainerPhase.RUNNING and slot.up
    reasons = [known.error]
    if known.phase not in _OVER and not running:
        reasons.append(slot.reason)
    return ContainerStatus(
        container_id,
        running,
        known.attempts,
        "; ".join(dict.fromkeys(each for each in reasons if each)),
        slot.where or known.host,
    )


def _is_over(records: Iterable[ContainerRecord | None]) -> bool:
    """Return whether no container runs or will run again, as `Supervision.over` does."""
    phases = {each.phase if each else ContainerPhase.WAITING for each in records}
    return phases <= _OVER or (ContainerPhase.ENDED in phases and phases <= _OVER | {ContainerPhase.GIVEN_UP})


def _is_removed(record: ContainerRecord) -> bool:
    return record.phase is ContainerPhase.REMOVED


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
