"""Jobs as objects of Nomad; `heron_scheduler_nomad.job_spec` has their shape."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace

from heron.errors import SchedulerError
from heron.spi.scheduler import JobLink
from heron_scheduler_kit.managed.cluster import (
    Cluster,
    JobChange,
    JobChangedError,
    JobExistsError,
    Observation,
    StoredJob,
)
from heron_scheduler_kit.managed.managed_job import ContainerRequest, ManagedJob, decode_job, encode_job
from heron_scheduler_kit.managed.rest_api import ApiError, Json, fields, translated
from heron_scheduler_nomad.allocations import is_left, newest, observation, placement_failure
from heron_scheduler_nomad.job_spec import (
    TASK,
    changed_job,
    job_name,
    job_variable,
    launch_items,
    launch_variable,
)
from heron_scheduler_nomad.nomad_api import NomadApi
from heron_scheduler_nomad.nomad_rights import check_rights
from heron_scheduler_nomad.options import NomadOptions

__all__ = ["NomadCluster"]

_JOB = "job"
_CONFLICT = 409
_CHANGED = "Enforcing job modify index"
_LINE_BYTES = 400  # of the logs of the engine, generously
_CHECKED = ManagedJob("check", "", containers=(ContainerRequest(0, "container-0", 0.0, 0),))


class NomadCluster(Cluster):
    """One namespace of one cluster."""

    def __init__(self, api: NomadApi, options: NomadOptions) -> None:
        self._api = api
        self._options = options

    def check(self, timeout_s: float) -> str:
        del timeout_s  # each request has its own limit, and the first one without an answer ends the check
        where = f"Nomad at {self._api.access.address}, namespace {self._api.access.namespace}"
        planned = changed_job(_CHECKED, self._options, {})
        name = _CHECKED.topology
        check_rights(self._api, planned, job_variable(name), launch_variable(name, _CHECKED.containers[0].place))
        answer = self._api.request("PUT", f"job/{planned['ID']}/plan", {"Job": planned, "Diff": False})
        failed = placement_failure([fields(answer)], _CHECKED.containers[0].place)
        if failed:
            msg = f"{where}: no client takes a container with the task driver {self._options.task_driver!r}: {failed}"
            raise SchedulerError(msg)
        return where

    def place(self, job: ManagedJob, container_id: int) -> str:
        del job
        return f"container-{container_id}"

    def find(self, topology: str) -> StoredJob | None:
        path = job_variable(topology)
        found = self._api.find(f"var/{path}")
        if found is None:
            return None
        stored_in = f"variable {path} in namespace {self._api.access.namespace}"
        job = decode_job(str(fields(found.get("Items")).get(_JOB, "")), stored_in, topology)
        return StoredJob(job, str(found["ModifyIndex"]), job_name(topology))

    def reserve(self, job: ManagedJob) -> None:
        name = job_name(job.topology)
        registered = self._api.find(f"job/{name}")  # before the variable, which a job of Heron has as long as it exists
        if registered is not None and self.find(job.topology) is None:
            msg = f"nomad has a job {name!r} that Heron does not know; end it with `nomad job stop -purge {name}`"
            raise SchedulerError(msg)
        with translated(JobExistsError, _CONFLICT):
            self._write(job_variable(job.topology), {_JOB: encode_job(job)}, "0")

    def replace(self, job: ManagedJob, version: str) -> None:
        with translated(JobChangedError, _CONFLICT):
            self._write(job_variable(job.topology), {_JOB: encode_job(job)}, version)

    def apply(self, change: JobChange) -> None:
        topology = change.after.topology
        for place, launch in change.files.items():
            self._write(launch_variable(topology, place), launch_items(launch))
        while not self._register(change.after):
            pass  # another command has registered meanwhile
        for place in change.removed:
            self._api.request("DELETE", f"var/{launch_variable(topology, place)}")

    def move(self, job: ManagedJob, place: str) -> None:
        while not self._register(job, place):
            pass  # another command has registered meanwhile

    def observe(self, job: ManagedJob) -> Mapping[str, Observation]:
        allocations = self._allocations(job.topology)
        last = newest(allocations)
        found = {place: observation(place, allocations) for place in last}
        waiting = [place for place in job.places if place not in last or not is_left(last[place])]
        evaluations = self._api.list(f"job/{job_name(job.topology)}/evaluations") if waiting else []
        for place in waiting:
            seen = found.get(place, Observation(up=False))
            reasons = seen.reason, self._last_words(last.get(place)), placement_failure(evaluations, place)
            found[place] = replace(seen, reason="; ".join(filter(None, reasons)))
        return found

    def end(self, topology: str) -> None:
        self._api.request("DELETE", f"job/{job_name(topology)}", query={"purge": "true"})
        for each in self._api.list("vars", {"prefix": f"{job_variable(topology)}/"}):
            self._api.request("DELETE", f"var/{each['Path']}")

    def remains(self, topology: str) -> Sequence[str]:
        left = filter(is_left, self._allocations(topology, every=True))
        return [f"allocation {each['ID']} ({each.get('TaskGroup')} on {each.get('NodeName')})" for each in left]

    def release(self, topology: str) -> None:
        self._api.request("DELETE", f"var/{job_variable(topology)}")

    def links(self, stored: StoredJob) -> tuple[JobLink, ...]:
        access, name = self._api.access, job_name(stored.job.topology)
        command = JobLink("allocations", f"nomad job status -namespace {access.namespace} {name}")
        page = self._options.page or ("" if access.socket else access.address)
        if not page:
            return (command,)
        job = f"{page.rstrip('/')}/ui/jobs/{name}@{access.namespace}"
        groups = (JobLink(f"container {each.container_id}", f"{job}/{each.place}") for each in stored.job.containers)
        return (command, JobLink("job", job), *groups)

    def output(self, job: ManagedJob, container_id: int, lines: int) -> Sequence[str]:
        last = newest(self._allocations(job.topology)).get(job.request(container_id).place)
        return self._log(last, "stdout", lines) if last is not None else []

    def _register(self, job: ManagedJob, moved: str = "") -> bool:
        """Register the groups of the stored job; return False when another command has registered it meanwhile.

        The place `moved` leaves its client, if that is avoided.
        """
        name = job_name(job.topology)
        registered = self._api.find(f"job/{name}") or {}  # before the stored job, which is at least as new then
        stored = self.find(job.topology)
        if stored is None or stored.job.topology_id != job.topology_id:
            msg = f"topology {job.topology!r} was killed meanwhile"
            raise SchedulerError(msg)
        wanted = changed_job(stored.job, self._options, registered, self.avoided, moved)
        index = registered.get("JobModifyIndex", 0)
        try:
            self._api.request("PUT", "jobs", {"Job": wanted, "EnforceIndex": True, "JobModifyIndex": index})
        except ApiError as error:
            if _CHANGED not in str(error):
                raise
            return False
        return True

    def _write(self, path: str, values: Mapping[str, str], version: str | None = None) -> None:
        query = {} if version is None else {"cas": version}
        self._api.request("PUT", f"var/{path}", {"Path": path, "Items": dict(values)}, query)

    def _allocations(self, topology: str, *, every: bool = False) -> list[Json]:
        """Return the allocations of a job; `every`: also those of jobs of that name that were purged."""
        query = {"all": "true"} if every else {}
        return self._api.list(f"job/{job_name(topology)}/allocations", query)

    def _last_words(self, allocation: Json | None) -> str:
        """Return the last line of the errors of a launcher that has ended, such as a missing module."""
        if allocation is None or allocation.get("ClientStatus") != "failed":
            return ""
        with suppress(SchedulerError):  # its client may be away
            return "".join(self._log(allocation, "stderr", 1))
        return ""

    def _log(self, allocation: Json, kind: str, lines: int) -> list[str]:
        query = {"task": TASK, "type": kind, "plain": "true", "origin": "end", "offset": str(lines * _LINE_BYTES)}
        return self._api.text(f"client/fs/logs/{allocation['ID']}", query).splitlines()[-lines:]
