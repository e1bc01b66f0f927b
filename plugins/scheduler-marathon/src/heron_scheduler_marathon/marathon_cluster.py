"""Jobs as groups of Marathon; `heron_scheduler_marathon.app_spec` has their shape, the state manager the stored job."""

from __future__ import annotations

import functools
import threading
from collections.abc import Iterable, Mapping, Sequence, Set
from contextlib import suppress

from heron.clock import monotonic_s
from heron.errors import SchedulerError
from heron.spi.scheduler import JobLink
from heron_scheduler_kit.managed.cluster import JobChange, Observation, StoredJob
from heron_scheduler_kit.managed.managed_job import ContainerRequest, ManagedJob
from heron_scheduler_kit.managed.rest_api import ApiError, Json, fields, items
from heron_scheduler_kit.managed.sealed_cluster import SealedCluster
from heron_scheduler_kit.mesos_files import Get, agent_address, last_lines, sandbox
from heron_scheduler_marathon.app_spec import RUN, app, app_id, constraints, group_id
from heron_scheduler_marathon.app_states import affected, creates, holder, is_unreachable, observation
from heron_scheduler_marathon.marathon_api import LOCKED, MarathonApi
from heron_scheduler_marathon.options import MarathonOptions

__all__ = ["MarathonCluster"]

_EMBED = "?embed=group.apps&embed=group.apps.tasks&embed=group.apps.counts&embed=group.apps.lastTaskFailure"
_LOCK_S = 4.0  # of the 5 s that a call may take
_POLL_S = 0.1
_WITH_WORDS = 3  # failed containers of one status
_CHECKED = ManagedJob("check", "", containers=(ContainerRequest(0, "container-0", 0.1, 32),))


class MarathonCluster(SealedCluster):
    """One Marathon, and one group in it for all topologies."""

    def __init__(self, api: MarathonApi, options: MarathonOptions) -> None:
        super().__init__(options, f"marathon {options.group}")
        self._api = api
        self._apps = options

    def check(self, timeout_s: float) -> str:
        del timeout_s  # each request has its own limit, and the first one without an answer ends the check
        info = self._api.find("info")
        if info is None or "frameworkId" not in info:
            msg = f"{self._api.access.addresses[0]} answers, but it is not Marathon; correct scheduler.addresses"
            raise SchedulerError(msg)
        planned = app(_CHECKED, _CHECKED.containers[0], self._apps, "true")
        group = {"id": group_id(self._apps, _CHECKED.topology), "apps": [planned]}
        self._api.request("PUT", f"groups{group['id']}", group, {"dryRun": "true"})
        self.key()
        return f"Marathon {info.get('version')} at {self._api.access.addresses[0]}, group {self._apps.group}"

    def place(self, job: ManagedJob, container_id: int) -> str:
        del job
        return f"container-{container_id}"

    def handle(self, job: ManagedJob) -> str:
        return group_id(self._apps, job.topology)

    def reserve(self, job: ManagedJob) -> None:
        group = self.handle(job)
        if self.find(job.topology) is None and self._group(job.topology):
            remedy = f"remove it with `dcos marathon group remove {group}` or in Marathon's pages"
            msg = f"marathon has a group {group} that Heron does not know; {remedy}"
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
        present = self._group(job.topology)
        sealed = self.write_launch_files(job, change.files)
        for request in job.containers:
            found = present.get(self._app_id(job, request.place))
            if request.place in change.files and found is None:
                # One by one, because an app that has no place locks all apps of its deployment.
                command = self.start_command(job, request.place, sealed, "$HOST")
                self._api.request("POST", "apps", app(job, request, self._apps, command, self.avoided))
            elif found is not None and _run(found) != job.topology_id:
                msg = f"the app {found.get('id')} is of another run; `heron kill {job.topology}` removes it"
                raise SchedulerError(msg)
        for place in change.removed:
            path = self._app_id(job, place)
            self._unlocked(f"apps{path}", {path})
        self.remove_launch_files(job.topology_id, change.removed)

    def _take_back(self, change: JobChange) -> None:
        """Remove what a change has created whose run was killed; the next run has the same group."""
        job = change.after
        mine = {self._app_id(job, place) for place in change.files}
        for path, found in self._group(job.topology).items():
            if path in mine and _run(found) == job.topology_id:
                self._unlocked(f"apps{path}", {path})
        self.remove_launch_files(job.topology_id)

    def move(self, job: ManagedJob, place: str) -> None:
        """Give the app other constraints: Marathon ends its task, and starts one that they permit."""
        self._api.request(
            "PUT", f"apps{self._app_id(job, place)}", {"constraints": constraints(self._apps, self.avoided)}
        )

    def restart(self, job: ManagedJob, place: str) -> None:
        path = self._app_id(job, place)
        self._api.remove(f"queue{path}/delay")
        self._api.remove(f"apps{path}/tasks?wipe=true")

    def observe(self, job: ManagedJob) -> Mapping[str, Observation]:
        apps = self._group(job.topology)
        ids = {self._app_id(job, place): place for place in job.places}
        found = {ids[each]: observation(apps[each], ()) for each in ids if each in apps}
        if any(not each.up for each in found.values()):
            queue = self._api.list("queue", "queue")
            down = [each for each in apps if each in ids and not found[ids[each]].up]
            words = self._last_words([apps[each] for each in down])
            for each in down:
                found[ids[each]] = observation(apps[each], queue, words.get(each, ""))
        if len(found) < len(ids):
            for each in ids.keys() - apps.keys() & _changing(self._api.list("deployments"), ids):
                found[ids[each]] = Observation(up=True, reason="marathon is stopping it")
        return found

    def end(self, topology: str) -> None:
        apps = self._group(topology)
        for each, found in apps.items():
            if any(map(is_unreachable, items(found.get("tasks")))):
                self._api.remove(f"apps{each}/tasks?wipe=true")  # else its deployment waits for that agent
        self._unlocked(f"groups{group_id(self._apps, topology)}", apps.keys())
        if (stored := self.find(topology)) is not None:
            self.remove_launch_files(stored.job.topology_id)

    def remains(self, topology: str) -> Sequence[str]:
        mine = f"{group_id(self._apps, topology)}/"
        tasks = [each for each in self._api.list("tasks", "tasks") if str(each.get("appId")).startswith(mine)]
        changes = [each for each in self._api.list("deployments") if any(it.startswith(mine) for it in affected(each))]
        return [*(f"task {each.get('id')} on {each.get('host')}" for each in tasks), *map(holder, changes)]

    def links(self, stored: StoredJob) -> tuple[JobLink, ...]:
        page = (self._apps.page or self._api.access.addresses[0]).rstrip("/")
        group = f"{page}/ui/#"
        apps = (
            JobLink(f"container {each.container_id}", f"{group}/apps/{_quoted(self._app_id(stored.job, each.place))}")
            for each in stored.job.containers
        )
        return (JobLink("group", f"{group}/group/{_quoted(self.handle(stored.job))}"), *apps)

    def output(self, job: ManagedJob, container_id: int, lines: int) -> Sequence[str]:
        found = self._group(job.topology).get(self._app_id(job, job.request(container_id).place), {})
        tasks = items(found.get("tasks"))
        return _printed(self._api.document, self._master(), tasks[-1], "stdout", lines) if tasks else []

    def _master(self) -> str:
        """Return the address of the master of Mesos."""
        config = fields(fields(self._api.request("GET", "info")).get("marathon_config"))
        master = (self._apps.mesos or str(config.get("mesos_leader_ui_url") or "")).rstrip("/")
        if not master:
            msg = "marathon does not say where Mesos is; set scheduler.mesos to the address of its master"
            raise SchedulerError(msg)
        return master

    def _last_words(self, apps: Iterable[Json]) -> Mapping[str, str]:
        """Return the last lines of the first launchers that could not start, such as a missing key file, by their apps.

        A status must not take minutes when much has failed: it mostly has one cause, and Mesos may not answer.
        """
        failures = {str(each["id"]): fields(each.get("lastTaskFailure")) for each in apps}
        failed = [each for each, failure in failures.items() if failure][:_WITH_WORDS]
        said: dict[str, str] = {}
        with suppress(SchedulerError):  # Mesos is away, or wants credentials
            get, master = functools.cache(self._api.document), self._master() if failed else ""
            for each in failed:
                said[each] = "".join(_printed(get, master, failures[each], "stderr", 1))
        return said

    def _unlocked(self, removed: str, apps: Set[str]) -> None:
        """Remove an app or a group with these apps when no deployment locks them.

        A deployment that does nothing but start these apps is reverted: it may wait for room for ever. Every other
        deployment is waited for, and never forced.

        Raises:
            SchedulerError: when one is there after `_LOCK_S`; names it.
        """
        deadline_s, pause = monotonic_s() + _LOCK_S, threading.Event()
        while True:
            try:
                self._api.remove(removed)
                return
            except ApiError as error:
                if error.status != LOCKED:
                    raise
                locks = [each for each in self._api.list("deployments") if affected(each) & apps]
                if monotonic_s() > deadline_s:
                    names = ", ".join(map(holder, locks)) or "unknown deployments"
                    msg = (
                        f"{names}: still at work after {_LOCK_S:g} s; try again later, or stop it in Marathon: {error}"
                    )
                    raise SchedulerError(msg) from error
            for each in locks:
                if creates(each) and affected(each) <= apps:
                    self._api.remove(f"deployments/{each['id']}")
            pause.wait(_POLL_S)

    def _group(self, topology: str) -> dict[str, Json]:
        """Return the apps of a topology by their paths."""
        found = self._api.find(f"groups{group_id(self._apps, topology)}{_EMBED}")
        return {str(each["id"]): each for each in items((found or {}).get("apps"))}

    def _app_id(self, job: ManagedJob, place: str) -> str:
        return app_id(self._apps, job.topology, place)


def _changing(deployments: Iterable[Json], ids: Mapping[str, str]) -> set[str]:
    return {each for deployment in deployments for each in affected(deployment) & ids.keys()}


def _printed(get: Get, master: str, task: Json, name: str, lines: int) -> list[str]:
    """Return the end of a file in the sandbox of a task, which the master and an agent of Mesos show."""
    agent = agent_address(get, master, str(task.get("slaveId")))
    folder = sandbox(get, agent, str(task.get("id") or task.get("taskId")))
    return last_lines(get, agent, f"{folder}/{name}", lines)


def _run(found: Json) -> object:
    return fields(found.get("labels")).get(RUN)


def _quoted(path: str) -> str:
    return path.replace("/", "%2F")
