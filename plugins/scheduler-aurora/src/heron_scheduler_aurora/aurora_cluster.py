"""Jobs as jobs of Aurora; `heron_scheduler_aurora.job_config` has their shape, the state manager the stored job."""

from __future__ import annotations

import getpass
import html
from collections.abc import Mapping, Sequence

from heron.errors import SchedulerError
from heron.spi.scheduler import JobLink
from heron_scheduler_aurora.aurora_api import AuroraApi
from heron_scheduler_aurora.aurora_job import AuroraJob
from heron_scheduler_aurora.aurora_rights import check_rights
from heron_scheduler_aurora.job_config import (
    HOST,
    INSTANCE,
    RUN,
    Size,
    added_instances,
    comparable,
    config_size,
    job_key,
    job_path,
    metadata,
    new_job,
    sealed_text,
    size_of,
    task_config,
    update_request,
)
from heron_scheduler_aurora.options import AuroraOptions
from heron_scheduler_aurora.task_states import (
    active,
    is_updating,
    observations,
    task_id,
    updates_words,
)
from heron_scheduler_kit.managed.cluster import JobChange, Observation, StoredJob
from heron_scheduler_kit.managed.managed_job import ContainerRequest, ManagedJob
from heron_scheduler_kit.managed.rest_api import Json, fields
from heron_scheduler_kit.managed.sealed_cluster import SealedCluster

__all__ = ["AuroraCluster"]

_LINE_BYTES = 400  # of the logs of the engine, generously
_CHECKED = ContainerRequest(0, "0", 0.1, 32)


class AuroraCluster(SealedCluster):
    """One cluster of Aurora."""

    def __init__(self, api: AuroraApi, options: AuroraOptions) -> None:
        super().__init__(options, f"aurora {options.cluster}")
        self._api = api
        self._given = options

    def check(self, timeout_s: float) -> str:
        del timeout_s  # each request has its own limit, and the first one without an answer ends the check
        answer = self._api.response("getTierConfigs")
        name = fields(answer.get("serverInfo")).get("clusterName")
        where = f"Aurora at {self._api.page}, cluster {name}"
        if name != self._given.cluster:
            msg = f"{where}: the profile names cluster {self._given.cluster!r}; correct scheduler.cluster or addresses"
            raise SchedulerError(msg)
        probe = ManagedJob("heron.profiles.check", "", role=getpass.getuser(), containers=(_CHECKED,))
        check_rights(self._api, self._config(probe, size_of(probe.containers), ""), where)
        self.key()
        return where

    def place(self, job: ManagedJob, container_id: int) -> str:
        del container_id  # Aurora numbers new instances itself: from the highest one on
        return str(max((int(each) for each in job.places), default=-1) + 1)

    def handle(self, job: ManagedJob) -> str:
        return job_path(job_key(job, self._given), self._given.cluster)

    def reserve(self, job: ManagedJob) -> None:
        if self.find(job.topology) is None and active(self._job(job).tasks()):
            path = self.handle(job)
            msg = f"aurora has a job {path} that Heron does not know; end it with `aurora job killall {path}`"
            raise SchedulerError(msg)
        super().reserve(job)

    def apply(self, change: JobChange) -> None:
        try:
            self._order(change)
        finally:
            if change.files and not self.is_stored(change.after):
                self._take_back(change)
                msg = f"topology {change.after.topology!r} was killed meanwhile"
                raise SchedulerError(msg)

    def _order(self, change: JobChange) -> None:
        job = change.after
        present = self._job(job).present(int(place) for place in change.files)
        missing = sorted(int(place) for place in change.files if int(place) not in present)
        foreign = [each for each in present.values() if metadata(_config(each), RUN) != job.topology_id]
        if foreign:
            msg = f"the job {self.handle(job)} is of another run; `heron kill {job.topology}` removes it"
            raise SchedulerError(msg)
        sealed = self.write_launch_files(job, change.files)
        if missing and not present:
            self._create(job, sealed)
        elif missing:
            self._add(job, missing, present, sealed)
        if removed := {int(place) for place in change.removed} & present.keys():
            self._job(job).kill(removed)
        self.remove_launch_files(job.topology_id, change.removed)

    def _take_back(self, change: JobChange) -> None:
        """Kill what a change has added whose run was killed; the next run may have the same job."""
        job = self._job(change.after)
        run, numbers = change.after.topology_id, {int(place) for place in change.files}
        mine = {number for number, each in active(job.tasks()).items() if metadata(_config(each), RUN) == run}
        for each in job.updates():
            if is_updating(each) and metadata(each, RUN) == run:
                mine |= added_instances(each)
        if mine & numbers:
            job.kill(mine & numbers)
        self.remove_launch_files(run)

    def move(self, job: ManagedJob, place: str) -> None:
        """Give an instance another config by a job update; Aurora puts the old one back if the new one fails."""
        number = int(place)
        sealed = sealed_text(_config(active(self._job(job).task(number)).get(number, {})))
        config = self._config(job, size_of(each for each in job.containers if each.place == place), sealed)
        self._job(job).update(update_request([number], config, self._given, adds=False))

    def restart(self, job: ManagedJob, place: str) -> None:
        self._job(job).restart(int(place))

    def observe(self, job: ManagedJob) -> Mapping[str, Observation]:
        mine = self._job(job)
        tasks = [each for each in mine.tasks() if metadata(_config(each), RUN) == job.topology_id]
        seen = observations(tasks, (), "")
        if {place for place, each in seen.items() if each.up} >= job.places:
            return seen
        updates = [each for each in mine.updates() if metadata(each, RUN) == job.topology_id]
        return observations(tasks, mine.pending(), updates_words(updates))

    def end(self, topology: str) -> None:
        stored = self.find(topology)
        if stored is not None:
            self._job(stored.job).kill_all()
            self.remove_launch_files(stored.job.topology_id)

    def remains(self, topology: str) -> Sequence[str]:
        stored = self.find(topology)
        left = active(self._job(stored.job).tasks()).values() if stored else ()
        return [f"task {task_id(each)} on {fields(each.get('assignedTask')).get('slaveHost')}" for each in left]

    def links(self, stored: StoredJob) -> tuple[JobLink, ...]:
        key = job_key(stored.job, self._given)
        page = f"{self._api.page}/scheduler/{key['role']}/{key['environment']}/{key['name']}"
        places = (JobLink(f"container {each.container_id}", f"{page}/{each.place}") for each in stored.job.containers)
        return (JobLink("instances", f"aurora job status {self.handle(stored.job)}"), JobLink("job", page), *places)

    def output(self, job: ManagedJob, container_id: int, lines: int) -> Sequence[str]:
        task = active(self._job(job).tasks()).get(int(job.request(container_id).place))
        host = fields((task or {}).get("assignedTask")).get("slaveHost")
        if task is None or not host:
            return []
        log = f"http://{host}:{self._given.observer_port}/logdata/{task_id(task)}/heron/0/stdout"
        end = int(str(fields(self._api.document(log)).get("offset") or 0))
        start = max(0, end - lines * _LINE_BYTES)
        found = fields(self._api.document(f"{log}?offset={start}&length={end - start}")).get("data")
        return html.unescape(str(found or "")).splitlines()[-lines:]

    def _create(self, job: ManagedJob, sealed: str) -> None:
        config = self._config(job, size_of(job.containers), sealed)
        self._api.call("createJob", description=new_job(job, config))

    def _add(self, job: ManagedJob, missing: Sequence[int], present: Mapping[int, Json], sealed: str) -> None:
        """Add instances: as copies of a present one if the new containers fit its config, else by a job update.

        Aurora numbers copies from its highest instance on, so the copies must be those numbers.
        """
        size = size_of(each for each in job.containers if int(each.place) in missing)
        follows = list(missing) == list(range(max(present) + 1, max(present) + 1 + len(missing)))
        model = self._model(job, size, present, sealed) if follows else None
        if model is not None:
            self._job(job).copy(model, len(missing))
        else:
            self._job(job).update(update_request(missing, self._config(job, size, sealed), self._given))

    def _model(self, job: ManagedJob, size: Size, present: Mapping[int, Json], sealed: str) -> int | None:
        """Return the smallest instance whose config is what this profile would make of its size."""
        large = [(config_size(_config(each)), number) for number, each in present.items()]
        fitting = [(found.memory_mb, found.cpu, number) for found, number in large if found.holds(size)]
        for _, _, number in sorted(fitting):
            found = _config(active(self._job(job).task(number)).get(number, {}))
            text = sealed_text(found)
            same = comparable(self._config(job, config_size(found), text)) == comparable(found)
            return number if same and self.is_same_reference(job, text, sealed) else None
        return None

    def _config(self, job: ManagedJob, size: Size, sealed: str) -> Json:
        return task_config(job, size, self._given, self.start_command(job, INSTANCE, sealed, HOST), self.avoided)

    def _job(self, job: ManagedJob) -> AuroraJob:
        return AuroraJob(self._api, job_key(job, self._given), self.handle(job))


def _config(task: Json) -> Json:
    return fields(fields(task.get("assignedTask")).get("task"))
