"""Slurm as a cluster of managed containers: a job for each, and a successor that takes over when the job ends."""

from __future__ import annotations

import contextlib
import re
import tempfile
from collections import deque
from collections.abc import Mapping, Sequence
from pathlib import Path

from heron.clock import monotonic_s
from heron.errors import SchedulerError
from heron.spi.scheduler import JobLink
from heron_scheduler_kit.managed.cluster import Cluster, JobChange, Observation, StoredJob
from heron_scheduler_kit.managed.managed_job import ContainerRequest, ManagedJob
from heron_scheduler_slurm.job_script import job_script, limits
from heron_scheduler_slurm.job_store import JobStore
from heron_scheduler_slurm.options import SlurmOptions
from heron_scheduler_slurm.partitions import find_partition_problem
from heron_scheduler_slurm.slurm_commands import SlurmCommands
from heron_scheduler_slurm.slurm_jobs import job_name, observe_places

__all__ = ["SlurmCluster"]

_CHECK_S = 10.0  # of a command; without a valid slurm.conf each one tries again for a minute
_TEST_RESULT = re.compile(r"to start at \S+ using \d+ processors on nodes \S+ in partition \S+")


class SlurmCluster(Cluster):
    """Keeps jobs in `JobStore`; Slurm has a batch job for each place, whose name is `job_name`."""

    def __init__(self, options: SlurmOptions) -> None:
        self._options = options
        self._store = JobStore(Path(options.root).expanduser())
        self._slurm = SlurmCommands(options)
        self._kill_at_s: dict[str, float] = {}

    def check(self, timeout_s: float) -> str:
        """Ask Slurm when a container of one core would start, with the partition, account and QOS of the options."""
        options = self._options
        self._store.check()
        timeout_s = min(timeout_s, _CHECK_S)
        for name in ("scancel", "squeue"):
            self._slurm.run(name, "--version", timeout_s=timeout_s)
        shown = self._slurm.run("scontrol", "show", "partition", "-o", timeout_s=timeout_s)
        if problem := find_partition_problem(shown, options.partition, options.account, options.time_limit):
            msg = f"Slurm: {problem}"
            raise SchedulerError(msg)
        smallest = ContainerRequest(0, "0", options.manager_cpu, options.manager_memory_mb)
        with tempfile.NamedTemporaryFile("w", suffix=".sh") as script:
            script.write("#!/bin/sh\n")
            script.flush()
            said = self._slurm.run(
                "sbatch", "--test-only", *limits(smallest, options), script.name, timeout_s=timeout_s
            )
        version = self._slurm.run("sbatch", "--version", timeout_s=timeout_s).strip()
        found = _TEST_RESULT.search(said)
        return f"{version}: a container is estimated {found[0] if found else said.strip()}"

    def find(self, topology: str) -> StoredJob | None:
        return self._store.find(topology)

    def reserve(self, job: ManagedJob) -> None:
        left = [each.number for each in self._slurm.jobs(job.topology) if not each.over]  # raises while Slurm is away
        if left and self._store.find(job.topology) is None:
            remedy = f"`scancel {' '.join(left)}`, or set scheduler.root to the folder that they use"
            msg = f"topology {job.topology!r}: Slurm has jobs of it, and {self._store.home('')} does not; {remedy}"
            raise SchedulerError(msg)
        self._store.add(job)

    def replace(self, job: ManagedJob, version: str) -> None:
        self._store.replace(job, version)

    def apply(self, change: JobChange) -> None:
        topology = change.after.topology
        jobs = [each for each in self._slurm.jobs(topology) if not each.over]
        for place in change.removed:
            self._store.withdraw(topology, place)
        removed = tuple(each for each in jobs if each.place in change.removed)
        stuck = tuple(each for each in removed if each.place in change.stuck)
        self._slurm.cancel(tuple(each for each in removed if each not in stuck), kill=False)
        self._slurm.cancel(stuck, kill=True)
        has_job = {each.place for each in jobs}
        for request in change.after.containers:
            launch = change.files.get(request.place)
            if launch is not None and request.place not in has_job:
                script = self._script(change.after, request)
                self._submit(self._store.write(topology, request.place, launch, script))

    def resubmit(self, job: ManagedJob, container_id: int) -> None:
        """Submit a job for a container that has none: its jobs were cancelled by hand, or could not start."""
        place = job.request(container_id).place
        jobs = self._slurm.jobs(job.topology)
        if not any(each.place == place and not each.over for each in jobs):
            self._submit(self._store.home(job.topology) / f"{place}.sh")

    def move(self, job: ManagedJob, place: str) -> None:
        mine = [each for each in self._slurm.jobs(job.topology) if each.place == place and not each.over]
        running = tuple(each for each in mine if each.runs)
        request = next(each for each in job.containers if each.place == place)
        script = self._store.write_script(job.topology, place, self._script(job, request))
        numbers = ":".join(each.number for each in running)
        self._submit(script, *([f"--dependency=afterany:{numbers}"] if running else []))
        self._slurm.cancel(tuple(each for each in mine if each.waits), kill=False)  # the successor may go there again
        self._slurm.cancel(running, kill=False)

    def observe(self, job: ManagedJob) -> Mapping[str, Observation]:
        return observe_places(self._slurm.jobs(job.topology), job.topology_id)

    def end(self, topology: str) -> None:
        jobs = self._slurm.jobs(topology)  # raises while Slurm is away; then nothing has changed
        self._store.withdraw(topology)
        self._kill_at_s[topology] = monotonic_s() + self._options.end_s
        self._slurm.cancel(jobs, kill=False)

    def remains(self, topology: str) -> Sequence[str]:
        jobs = tuple(each for each in self._slurm.jobs(topology) if not each.over)
        late = monotonic_s() >= self._kill_at_s.get(topology, float("inf"))
        self._slurm.cancel(jobs if late else tuple(each for each in jobs if each.waits), kill=late)
        return [str(each) for each in jobs]

    def release(self, topology: str) -> None:
        self._store.remove(topology)

    def links(self, stored: StoredJob) -> tuple[JobLink, ...]:
        names = ",".join(job_name(stored.job.topology, each.place) for each in stored.job.containers)
        return (
            JobLink("Slurm's queue", f"squeue --me --name={names}"),
            JobLink("output of containers", str(self._store.home(stored.job.topology))),
        )

    def output(self, job: ManagedJob, container_id: int, lines: int) -> Sequence[str]:
        path = self._store.home(job.topology) / f"{job.request(container_id).place}.out"
        with contextlib.suppress(FileNotFoundError), path.open(encoding="utf-8", errors="replace") as file:
            return [line.rstrip("\n") for line in deque(file, lines)]
        return []

    def _script(self, job: ManagedJob, request: ContainerRequest) -> str:
        avoided = self.avoided and self.avoided & self._slurm.nodes()  # Slurm refuses a job that names an unknown node
        return job_script(job, request, self._store.home(job.topology), self._options, avoided)

    def _submit(self, script: Path, *options: str) -> None:
        self._slurm.run("sbatch", "--parsable", *options, str(script))
