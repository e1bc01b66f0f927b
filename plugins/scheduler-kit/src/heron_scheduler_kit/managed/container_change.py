"""Adds containers to a running job and removes them, in the cluster and in their records."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from dataclasses import replace

from heron.clock import monotonic_s
from heron.errors import HeronError, SchedulerError
from heron.spi.scheduler import ContainerSpec, PlannedRun
from heron_scheduler_kit.managed.cluster import Cluster, JobChange, JobChangedError, StoredJob
from heron_scheduler_kit.managed.container_life import removed
from heron_scheduler_kit.managed.container_records import ContainerPhase, ContainerRecords
from heron_scheduler_kit.managed.container_state import ABSENT, container_status
from heron_scheduler_kit.managed.launch_file import encode_launch_file
from heron_scheduler_kit.managed.managed_job import ManagedJob
from heron_scheduler_kit.managed.managed_options import ManagedOptions

__all__ = ["ContainerChange", "find_running", "is_up", "launch_files", "why_not_up"]

Poll = Callable[[Callable[[], bool], float], bool]
"""Wait until a condition holds, at most to a monotonic time in seconds; return whether it holds."""


class ContainerChange:
    """One change of the set of containers. It is safe beside another change of the same job."""

    def __init__(self, cluster: Cluster, options: ManagedOptions, records: ContainerRecords, poll: Poll) -> None:
        self._cluster = cluster
        self._options = options
        self._records = records
        self._poll = poll

    def add(self, topology: str, specs: Sequence[ContainerSpec], deadline_s: float) -> ManagedJob:
        """Add containers and return the job when all of them run.

        Raises:
            SchedulerError: when one does not run at the deadline, or has failed; all of them are removed again.
        """
        before, after = self._store(topology, lambda job: job.with_added(specs, self._options, self._cluster.place))
        ids = [each.container_id for each in specs]
        try:
            self._records.add(topology, ids)
            self._cluster.apply(JobChange(before, after, launch_files(after, specs, self._options)))
            for each in ids:
                self._wait_for(after, each, deadline_s)
        except BaseException:
            with suppress(HeronError):  # the first error says more, and the next update removes them
                self.remove(after, ids)
            raise
        return after

    def remove(self, job: ManagedJob, container_ids: Sequence[int]) -> None:
        """End containers in order by their records, then their places; return when none of them runs.

        Raises:
            SchedulerError: when the cluster does not end one; the call may be repeated.
        """
        places = {each: job.request(each).place for each in container_ids}
        for each in container_ids:
            self._records.change(each, lambda record: replace(record, wanted=False))
        seen = self._cluster.observe(job)
        up = [each for each in container_ids if seen.get(places[each], ABSENT).up]
        self._poll(lambda: all(map(self._has_ended, up)), self._grace_at_s())
        stuck = frozenset(places[each] for each in container_ids if not self._has_ended(each))
        before, after = self._store(job.topology, lambda now: now.without(container_ids))
        self._cluster.apply(JobChange(before, after, {}, stuck))
        if not self._poll(lambda: not self._any_up(before, stuck), self._grace_at_s()):
            msg = f"topology {job.topology!r}: the cluster does not end {', '.join(sorted(stuck))}"
            raise SchedulerError(msg)
        for each in container_ids:
            self._records.change(each, removed)

    def _wait_for(self, job: ManagedJob, container_id: int, deadline_s: float) -> None:
        def settled() -> bool:
            record = self._records.get(container_id)
            return record is None or bool(record.error) or is_up(self._records, container_id, 0)

        self._poll(settled, deadline_s)
        record = self._records.get(container_id)
        if record is None or record.error or not is_up(self._records, container_id, 0):
            why = why_not_up(self._cluster, self._records, job, container_id)
            msg = f"container {container_id} does not start: {why}"
            raise SchedulerError(msg)

    def _store(self, topology: str, changed: Callable[[ManagedJob], ManagedJob]) -> tuple[ManagedJob, ManagedJob]:
        """Change the stored job; return it as it was and as it is."""
        while True:
            stored = find_running(self._cluster, topology)
            after = changed(stored.job)
            try:
                self._cluster.replace(after, stored.version)
            except JobChangedError:
                continue
            return stored.job, after

    def _has_ended(self, container_id: int) -> bool:
        record = self._records.get(container_id)
        return record is None or record.phase is ContainerPhase.REMOVED

    def _any_up(self, job: ManagedJob, places: Collection[str]) -> bool:
        seen = self._cluster.observe(job) if places else {}
        return any(seen.get(each, ABSENT).up for each in places)

    def _grace_at_s(self) -> float:
        return monotonic_s() + self._options.end_s


def find_running(cluster: Cluster, topology: str) -> StoredJob:
    """Return the job of a topology. Raises SchedulerError when the cluster has none."""
    stored = cluster.find(topology)
    if stored is None:
        msg = f"topology {topology!r} does not run there; `heron list` shows what runs"
        raise SchedulerError(msg)
    return stored


def launch_files(
    job: ManagedJob, specs: Sequence[ContainerSpec], options: ManagedOptions, planned: PlannedRun | None = None
) -> dict[str, bytes]:
    """Return the launch files of containers, by their places."""
    return {job.request(each.container_id).place: encode_launch_file(each, options, planned) for each in specs}


def is_up(records: ContainerRecords, container_id: int, attempts: int) -> bool:
    """Return whether a later attempt than number `attempts` runs, or has ended for good."""
    record = records.get(container_id)
    started = record is not None and record.phase in {ContainerPhase.RUNNING, ContainerPhase.ENDED}
    return record is not None and started and record.attempts > attempts


def why_not_up(cluster: Cluster, records: ContainerRecords, job: ManagedJob, container_id: int) -> str:
    """Return why a container does not run."""
    place = cluster.observe(job).get(job.request(container_id).place, ABSENT)
    return container_status(container_id, records.get(container_id), place).last_error or "it is still being started"
