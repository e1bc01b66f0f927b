"""Jobs as services of YARN; `heron_scheduler_yarn.service_spec` has their shape."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache, partial

from heron.clock import monotonic_s
from heron.errors import SchedulerError
from heron.spi.scheduler import JobLink
from heron_scheduler_kit.managed.cluster import Cluster, JobChange, Observation, StoredJob
from heron_scheduler_kit.managed.managed_job import ManagedJob
from heron_scheduler_kit.managed.rest_api import ApiError, Json, fields, items
from heron_scheduler_yarn.job_store import JobStore
from heron_scheduler_yarn.options import YarnOptions
from heron_scheduler_yarn.service_spec import COMPONENT, new_service_name, service_spec
from heron_scheduler_yarn.service_view import (
    YarnContainer,
    containers_of,
    diagnostics,
    observation,
    printed_lines,
)
from heron_scheduler_yarn.yarn_api import SERVICES, YarnApi

__all__ = ["YarnCluster"]

_LINE_BYTES = 400  # of the logs of the engine, generously
_LAST_LINES = 5
_NOT_FOUND = 404
_UNKNOWN = "doesn't exist"  # 400, of a service that YARN has not stored
_LEAST_S = 0.1
_RECORD_S = "30"  # how long YARN records why its scheduler gives nothing


class YarnCluster(Cluster):
    """The services of one user on one cluster."""

    def __init__(self, api: YarnApi, store: JobStore, options: YarnOptions) -> None:
        self._api = api
        self._store = store
        self._options = options
        self._ending: dict[str, dict[str, str]] = {}
        """The node managers (``HOST:PORT``) that ran a container when the topology was ended, by container."""

    def check(self, timeout_s: float) -> str:
        end_s = monotonic_s() + timeout_s
        files = self._store.check(timeout_s)
        # The first request after a start of the resource manager needs longer than others: Java loads the classes.
        self._api.request("GET", f"{SERVICES}/version", limit_s=max(_LEAST_S, end_s - monotonic_s()))
        nodes = len(self._nodes())
        where = f"YARN at {self._api.access.addresses[0]}, {nodes} nodes; {files}"
        if not nodes:
            msg = f"{where}: no node runs; see `yarn node -list -all`"
            raise SchedulerError(msg)
        return where

    def find(self, topology: str) -> StoredJob | None:
        return self._store.find(topology)

    def reserve(self, job: ManagedJob) -> None:
        self._api.request("GET", f"{SERVICES}/version")  # raises while YARN is away; then nothing has changed
        self._store.add(job)

    def replace(self, job: ManagedJob, version: str) -> None:
        self._store.replace(job, version)

    def apply(self, change: JobChange) -> None:
        topology = change.after.topology
        services = self._store.services(topology)
        placed = {place for files in services.values() for place in files}
        if new := {place: file for place, file in change.files.items() if place not in placed}:
            name = new_service_name(topology)
            services[name] = self._store.add_service(topology, name, new)
        for name, files in services.items():
            if not files.keys().isdisjoint(change.files) and self._api.service(name) is None:
                self._api.create(service_spec(name, change.after, files, self._options))
            if gone := files.keys() & change.removed:
                self._remove(name, files, gone)

    def observe(self, job: ManagedJob) -> Mapping[str, Observation]:
        found: dict[str, Observation] = {}
        for name, files in self._store.services(job.topology).items():
            service = self._api.service(name)
            if service is None:
                missing = Observation(up=False, reason=f"YARN has no service {name}; `heron kill` removes the rest")
                found.update(dict.fromkeys(files, missing))
                continue
            why = cache(partial(self._why, str(service.get("id"))))
            found.update({place: observation(place, service, why) for place in files})
        return found

    def end(self, topology: str) -> None:
        for name, files in self._store.services(topology).items():
            with suppress(SchedulerError):  # its master may be lost; without an answer of YARN the next call raises
                self._ending.setdefault(topology, {}).update(self._places_to_watch(self._api.service(name) or {}))
            self._destroy(name)
            for path in files.values():
                self._store.withdraw(path)

    def remains(self, topology: str) -> Sequence[str]:
        left = [
            f"application {each['id']} ({name})"
            for name in self._store.services(topology)
            for each in self._api.live(name)
        ]
        ending = self._ending.get(topology, {})
        for container in [each for each, node in ending.items() if not self._runs(node, each)]:
            del ending[container]
        return [*left, *(f"{container} on {node}" for container, node in ending.items())]

    def release(self, topology: str) -> None:
        self._store.remove(topology)

    def links(self, stored: StoredJob) -> tuple[JobLink, ...]:
        page = self._api.access.addresses[0]
        found = []
        for name in self._store.services(stored.job.topology):
            found.append(JobLink("service", f"yarn app -status {name}"))
            found += [JobLink(name, f"{page}/cluster/app/{each['id']}") for each in self._api.applications(name)]
        return tuple(found)

    def output(self, job: ManagedJob, container_id: int, lines: int) -> Sequence[str]:
        place = job.request(container_id).place
        for name, files in self._store.services(job.topology).items():
            service = self._api.service(name) if place in files else None
            for each in [each for each in containers_of(service or {}) if each.place == place][-1:]:
                return self._log(each, "stdout.txt", lines)
        return []

    def _remove(self, name: str, files: Mapping[str, str], gone: set[str]) -> None:
        """End places of a service; the service too, if it has no others."""
        if gone < files.keys():
            for place in sorted(gone):
                component = f"{COMPONENT}{place}"
                body: Json = {"name": component, "number_of_containers": 0}
                self._api.request("PUT", f"{SERVICES}/{name}/components/{component}", body)
                self._store.withdraw(files[place])
        else:
            self._destroy(name)
            self._store.withdraw(next(iter(files.values())).rpartition("/")[0])

    def _destroy(self, name: str) -> None:
        """End a service. Its master would take seconds to end by itself, so the resource manager ends it."""
        self._api.kill(name)  # YARN destroys no service that runs
        try:
            self._api.request("DELETE", f"{SERVICES}/{name}")
        except ApiError as error:
            if error.status != _NOT_FOUND and _UNKNOWN not in str(error):
                raise

    def _why(self, application: str, last: YarnContainer | None) -> list[str]:
        """Return what YARN says about a container that is awaited, or has failed."""
        if last is not None:
            return [each for each in self._log(last, "stderr.txt", _LAST_LINES) if each.strip()][-1:]
        try:
            told = fields(self._api.cluster(f"apps/{application}").get("app"))
            activities = self._api.cluster(f"scheduler/app-activities/{application}", {"maxTime": _RECORD_S})
        except ApiError:  # it has no application yet
            return []
        return [str(told.get("diagnostics") or ""), *diagnostics(activities)]

    def _log(self, container: YarnContainer, file: str, lines: int) -> list[str]:
        for node in self._nodes(container.host):
            query = {"size": str(-lines * _LINE_BYTES)}
            answer = self._api.on_node(node, f"containers/{container.container_id}/logs/{file}", query)
            if answer is not None:
                return printed_lines(answer.text)[-lines:]
        return []

    def _nodes(self, host: str = "") -> list[str]:
        """Return the web addresses of the node managers that run, on a host or on all."""
        found = fields(self._api.cluster("nodes", {"states": "RUNNING"}).get("nodes"))
        return [
            str(each["nodeHTTPAddress"]) for each in items(found.get("node")) if host in {"", each.get("nodeHostName")}
        ]

    def _places_to_watch(self, service: Json) -> Iterator[tuple[str, str]]:
        for each in containers_of(service):
            for node in self._nodes(each.host):
                if self._runs(node, each.container_id):
                    yield each.container_id, node

    def _runs(self, node: str, container: str) -> bool:
        """Return whether a node manager still has processes of a container."""
        answer = self._api.on_node(node, f"containers/{container}")
        return answer is not None and fields(fields(answer.json()).get("container")).get("state") != "DONE"
