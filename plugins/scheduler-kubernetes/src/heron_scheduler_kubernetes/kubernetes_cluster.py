"""Jobs as objects of Kubernetes; `heron_scheduler_kubernetes.objects` has their shape."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

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
from heron_scheduler_kit.managed.managed_job import ManagedJob, decode_job
from heron_scheduler_kit.managed.rest_api import Json, fields, items, translated
from heron_scheduler_kubernetes.access_rules import missing_rights
from heron_scheduler_kubernetes.kubernetes_api import MERGE, KubernetesApi
from heron_scheduler_kubernetes.objects import (
    JOB,
    JOB_NAME,
    job_name,
    launch_secret,
    place_of,
    replicas,
    service,
    stateful_sets,
)
from heron_scheduler_kubernetes.options import KubernetesOptions
from heron_scheduler_kubernetes.pod_states import missing_reason, observation

__all__ = ["KubernetesCluster"]

_SERVICES, _SECRETS, _PODS, _EVENTS = "v1/services", "v1/secrets", "v1/pods", "v1/events"
_SETS = "apps/v1/statefulsets"
_RULES = "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews"
_NOT_FOUND, _CONFLICT = 404, 409


class KubernetesCluster(Cluster):
    """One namespace of one cluster."""

    def __init__(self, api: KubernetesApi, options: KubernetesOptions) -> None:
        self._api = api
        self._options = options

    def check(self, timeout_s: float) -> str:
        del timeout_s  # two requests, of at most 4 s each
        version = self._api.request("GET", "/version").get("gitVersion")
        review: Json = {"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectRulesReview"}
        answer = self._api.request("POST", _RULES, {**review, "spec": {"namespace": self._api.namespace}})
        where = f"Kubernetes {version} at {self._api.access.server}, namespace {self._api.namespace}"
        if missing := missing_rights(answer):
            msg = f"{where}: {self._api.access.origin} may not {'; '.join(missing)}; grant the Role in the README"
            raise SchedulerError(msg)
        return where

    def place(self, job: ManagedJob, container_id: int) -> str:
        return place_of(job, container_id)

    def find(self, topology: str) -> StoredJob | None:
        name = job_name(topology)
        found = self._api.find(self._api.path(_SERVICES, name))
        if found is None:
            return None
        metadata = fields(found["metadata"])
        stored_in = f"service {name} in namespace {self._api.namespace}"
        job = decode_job(str(fields(metadata.get("annotations")).get(JOB, "")), stored_in, topology)
        return StoredJob(job, str(metadata["resourceVersion"]), f"{self._api.namespace}/{name}")

    def reserve(self, job: ManagedJob) -> None:
        with translated(JobExistsError, _CONFLICT):
            self._api.request("POST", self._api.path(_SERVICES), service(job, self._options))

    def replace(self, job: ManagedJob, version: str) -> None:
        changed = fields(service(job, self._options)["metadata"])["annotations"]
        patch: Json = {"metadata": {"annotations": changed, "resourceVersion": version}}
        with translated(JobChangedError, _CONFLICT, _NOT_FOUND):
            path = self._api.path(_SERVICES, job_name(job.topology))
            self._api.request("PATCH", path, patch, content_type=MERGE)

    def apply(self, change: JobChange) -> None:
        job = change.after
        name = job_name(job.topology)
        found = self._api.request("GET", self._api.path(_SERVICES, name))
        owner = str(fields(found["metadata"])["uid"])
        secret = launch_secret(job, self._options, change.files, owner)
        if change.before is None:
            self._api.apply(self._api.path(_SECRETS, name), secret)
        elif change.files or change.removed:
            data = {**fields(secret["data"]), **dict.fromkeys(change.removed)}
            self._api.request("PATCH", self._api.path(_SECRETS, name), {"data": data}, content_type=MERGE)
        stale = self._stale(change) if change.before is not None else []  # new Pods read the new launch files
        self._apply_sets(job, owner)
        for pod in stale:
            self._api.delete(self._api.path(_PODS, pod))

    def move(self, job: ManagedJob, place: str) -> None:
        found = self._api.request("GET", self._api.path(_SERVICES, job_name(job.topology)))
        self._apply_sets(job, str(fields(found["metadata"])["uid"]))
        self._api.delete(self._api.path(_PODS, place))

    def observe(self, job: ManagedJob) -> Mapping[str, Observation]:
        name = job_name(job.topology)
        found = {_name(each): observation(each) for each in self._of(_PODS, name)}
        if missing := job.places - found.keys():
            query = {"fieldSelector": "involvedObject.kind=StatefulSet,type=Warning"}
            events = items(self._api.request("GET", self._api.path(_EVENTS), query=query).get("items"))
            for each in missing:
                reason = missing_reason(events, each.rpartition("-")[0])
                found[each] = Observation(up=False, reason=reason)
        return found

    def end(self, topology: str) -> None:
        name = job_name(topology)
        selected = {"labelSelector": f"{JOB_NAME}={name}"}
        # In the foreground: a StatefulSet that is being deleted starts no Pods again.
        self._api.delete(self._api.path(_SETS), {"propagationPolicy": "Foreground"}, selected)
        self._api.delete(self._api.path(_PODS), None, selected)
        self._api.delete(self._api.path(_SECRETS, name))

    def remains(self, topology: str) -> Sequence[str]:
        name = job_name(topology)
        return [_name(each) for kind in (_PODS, _SETS) for each in self._of(kind, name)]

    def release(self, topology: str) -> None:
        self._api.delete(self._api.path(_SERVICES, job_name(topology)))

    def links(self, stored: StoredJob) -> tuple[JobLink, ...]:
        namespace, name = self._api.namespace, job_name(stored.job.topology)
        pods = JobLink("pods", f"kubectl -n {namespace} get pods -l {JOB_NAME}={name}")
        if not self._options.page:
            return (pods,)
        pages = (
            JobLink(f"container {each.container_id}", self._options.page.format(namespace=namespace, pod=each.place))
            for each in stored.job.containers
        )
        return (pods, *pages)

    def output(self, job: ManagedJob, container_id: int, lines: int) -> Sequence[str]:
        path = self._api.path(_PODS, job.request(container_id).place)
        return self._api.text(f"{path}/log", {"tailLines": str(lines)}).splitlines()

    def _apply_sets(self, job: ManagedJob, owner: str) -> None:
        for each in stateful_sets(job, self._options, owner, self.avoided):
            self._api.apply(self._api.path(_SETS, _name(each)), each)

    def _stale(self, change: JobChange) -> list[str]:
        """Return the Pods that stay in their StatefulSet, and must read another launch file or end a stuck process."""
        name, kept = job_name(change.after.topology), replicas(change.after)
        staying = {f"{name}-manager-0", *(f"{name}-data-{number}" for number in range(kept))}
        present = {_name(each) for each in self._of(_PODS, name)}
        return sorted((change.files.keys() | change.stuck) & present & staying)

    def _of(self, kind: str, name: str) -> list[Json]:
        query = {"labelSelector": f"{JOB_NAME}={name}"}
        return items(self._api.request("GET", self._api.path(kind), query=query).get("items"))


def _name(found: Json) -> str:
    return str(fields(found["metadata"])["name"])
