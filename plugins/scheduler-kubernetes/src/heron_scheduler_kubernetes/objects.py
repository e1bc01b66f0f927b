"""The objects of a job: a headless Service, a Secret, and two StatefulSets. Pure.

| object | name | what it is |
|---|---|---|
| Service | ``heron-NAME`` | the stored job, in an annotation; names of Pods in DNS. It owns the other objects |
| Secret | ``heron-NAME`` | the launch files, by the names of Pods |
| StatefulSet | ``heron-NAME-manager`` | container 0 |
| StatefulSet | ``heron-NAME-data`` | the other containers; Pod N has container N + 1 unless an update changed that |
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Collection, Mapping

from heron_scheduler_kit.managed.launcher import HOST_ADDRESS
from heron_scheduler_kit.managed.managed_job import ContainerRequest, ManagedJob, encode_job
from heron_scheduler_kit.managed.rest_api import Json, fields, items
from heron_scheduler_kubernetes.options import KubernetesOptions

__all__ = ["JOB", "JOB_NAME", "job_name", "launch_secret", "place_of", "replicas", "service", "stateful_sets"]

JOB = "heron.io/job"
"""The annotation of the Service with the stored job."""

JOB_NAME = "heron.io/name"
"""The label of all objects of a job, with its name."""

_PART = "heron.io/part"
_POD_NAME = "statefulset.kubernetes.io/pod-name"  # a label that each StatefulSet gives its Pods
_LAUNCH = "/heron/launch"
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_CLEAN = re.compile(r"[a-z0-9]([-a-z0-9]{0,36}[a-z0-9])?")
_LABEL = re.compile(r"[^A-Za-z0-9_.-]")
_READ_BY_GROUP = 0o440
_GROUP = 65532  # "nonroot" of many images


def job_name(topology: str) -> str:
    """Return the name of a job: that of its topology, as far as Kubernetes takes it.

    The names of Pods and of their revisions have at most 63 characters, so this has at most 44.
    """
    if _CLEAN.fullmatch(topology):
        return f"heron-{topology}"
    digest = hashlib.sha256(topology.encode()).hexdigest()[:8]
    readable = re.sub(r"[^a-z0-9]+", "-", topology.lower()).strip("-")[:29].strip("-")
    return f"heron-{readable}-{digest}" if readable else f"heron-{digest}"


def place_of(job: ManagedJob, container_id: int) -> str:
    """Return the Pod for a container that joins the job: the first one without a container."""
    name = job_name(job.topology)
    if container_id == 0:
        return f"{name}-manager-0"
    number = 0
    while f"{name}-data-{number}" in job.places:
        number += 1
    return f"{name}-data-{number}"


def replicas(job: ManagedJob) -> int:
    """Return the number of data Pods: up to the last one with a container."""
    prefix = f"{job_name(job.topology)}-data-"
    return max((int(each.removeprefix(prefix)) + 1 for each in job.places if each.startswith(prefix)), default=0)


def service(job: ManagedJob, options: KubernetesOptions) -> Json:
    """Return the Service with the stored job."""
    name = job_name(job.topology)
    metadata = _metadata(job, options, name)
    metadata["annotations"] = {**options.annotations, JOB: encode_job(job)}
    # Pods find each other through the state manager; DNS is for people, also while a Pod is not ready.
    spec = {"clusterIP": "None", "publishNotReadyAddresses": True, "selector": {JOB_NAME: name}}
    return {"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": spec}


def launch_secret(job: ManagedJob, options: KubernetesOptions, files: Mapping[str, bytes], owner: str = "") -> Json:
    """Return the Secret with the launch files; `owner` is the uid of the Service, if it is known."""
    metadata = _metadata(job, options, job_name(job.topology), owner)
    data = {pod: base64.b64encode(each).decode() for pod, each in files.items()}
    return {"apiVersion": "v1", "kind": "Secret", "type": "heron.io/launch", "metadata": metadata, "data": data}


def stateful_sets(
    job: ManagedJob, options: KubernetesOptions, owner: str = "", avoided: Collection[str] = ()
) -> list[Json]:
    """Return both StatefulSets; the Pods of one set have one size, that of the largest container.

    A Pod that is made from now on runs on no Node of `avoided`.
    """
    parts = {
        "manager": ([each for each in job.containers if each.container_id == 0], min(1, len(job.containers))),
        "data": ([each for each in job.containers if each.container_id], replicas(job)),
    }
    sets = [_stateful_set(job, options, part, *found, owner) for part, found in parts.items()]
    for each in sets if avoided else ():
        pod = fields(fields(fields(each["spec"])["template"])["spec"])
        pod["affinity"] = _elsewhere(fields(pod["affinity"]), avoided)
    return sets


def _elsewhere(affinity: Json, avoided: Collection[str]) -> Json:
    """Return an affinity that also excludes Nodes. One of its terms must hold, so each of them gets the rules."""
    node = fields(affinity.get("nodeAffinity"))
    required = fields(node.get(_REQUIRED))
    rules = [{"key": "metadata.name", "operator": "NotIn", "values": [each]} for each in sorted(avoided)]
    terms = items(required.get("nodeSelectorTerms")) or [{}]
    terms = [{**each, "matchFields": [*items(each.get("matchFields")), *rules]} for each in terms]
    return {**affinity, "nodeAffinity": {**node, _REQUIRED: {"nodeSelectorTerms": terms}}}


def _stateful_set(
    job: ManagedJob, options: KubernetesOptions, part: str, containers: list[ContainerRequest], count: int, owner: str
) -> Json:
    name = job_name(job.topology)
    selector = {JOB_NAME: name, _PART: part}
    metadata = _metadata(job, options, f"{name}-{part}", owner)
    labels = {**fields(metadata["labels"]), **selector}
    template = {
        "metadata": {"labels": labels, "annotations": {**options.annotations, "heron.io/topology": job.topology}},
        "spec": _pod(job, options, part, containers),
    }
    spec: Json = {
        "serviceName": name,
        "replicas": count,
        "podManagementPolicy": "Parallel",
        "updateStrategy": {"type": "OnDelete"},  # an update must not restart containers that it does not change
        "selector": {"matchLabels": selector},
        "template": template,
    }
    return {"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": metadata, "spec": spec}


def _pod(job: ManagedJob, options: KubernetesOptions, part: str, containers: list[ContainerRequest]) -> Json:
    name = job_name(job.topology)
    user = options.run_as_user
    # The files of a Secret belong to root and to the group `fsGroup`, which every process of the Pod is in.
    security: Json = {"seccompProfile": {"type": "RuntimeDefault"}, "fsGroup": _GROUP if user is None else user}
    if user is not None:
        security |= {"runAsUser": user, "runAsGroup": user, "runAsNonRoot": user != 0}
    apart = [_apart_from({"matchLabels": {JOB_NAME: name}})]
    if part == "manager" and job.standby_places:  # Kubernetes applies it in both directions
        one_of = {"key": _POD_NAME, "operator": "In", "values": list(job.standby_places)}
        apart.append(_apart_from({"matchExpressions": [one_of]}))
    return {
        "affinity": {"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": apart}},
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "securityContext": security,
        "volumes": [
            {"name": "launch", "secret": {"secretName": name, "defaultMode": _READ_BY_GROUP}},
            {"name": "run", "emptyDir": {}},
        ],
        **options.pod,
        "terminationGracePeriodSeconds": int(options.end_s + 0.999),
        "containers": [_container(options, containers)],
    }


def _apart_from(pods: Json) -> Json:
    """Return the preference for another node than those of the Pods that a selector finds."""
    return {"weight": 100, "podAffinityTerm": {"labelSelector": pods, "topologyKey": "kubernetes.io/hostname"}}


def _container(options: KubernetesOptions, containers: list[ContainerRequest]) -> Json:
    cpu = f"{int(1000 * max((each.cpu for each in containers), default=0.0))}m"
    memory = f"{max((each.memory_mb for each in containers), default=0)}Mi"
    disk_mb = max((each.disk_mb for each in containers), default=0)
    requests = {"cpu": cpu, "memory": memory} | ({"ephemeral-storage": f"{disk_mb}Mi"} if disk_mb else {})
    limits = {"memory": memory} | ({"cpu": cpu} if options.cpu_limit else {})
    known = {"HERON_POD": "metadata.name", HOST_ADDRESS: "status.podIP"}
    env: list[Json] = [{"name": key, "value": value} for key, value in sorted(options.env.items())]
    env += [{"name": key, "valueFrom": {"fieldRef": {"fieldPath": field}}} for key, field in known.items()]
    container: Json = {
        "name": "heron",
        "image": options.image,
        "command": list(options.python_command("heron_scheduler_kit.managed.launcher", f"{_LAUNCH}/$(HERON_POD)")),
        "env": env,
        "resources": {"requests": requests, "limits": limits},
        "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "volumeMounts": [
            {"name": "launch", "mountPath": _LAUNCH, "readOnly": True},
            {"name": "run", "mountPath": "/tmp"},  # noqa: S108 - the folder of the Pod alone
        ],
    }
    return container | ({"imagePullPolicy": options.image_pull_policy} if options.image_pull_policy else {})


def _metadata(job: ManagedJob, options: KubernetesOptions, name: str, owner: str = "") -> Json:
    known = {"topology": job.topology, "run": job.topology_id, "owner": job.owner, "role": job.role, "env": job.env}
    labels = {f"heron.io/{key}": _label(value) for key, value in known.items() if _label(value)}
    service_name = job_name(job.topology)
    standard = {"app.kubernetes.io/name": "heron", "app.kubernetes.io/instance": service_name, JOB_NAME: service_name}
    metadata: Json = {"name": name, "labels": {**options.labels, **standard, **labels}}
    if options.annotations:
        metadata["annotations"] = dict(options.annotations)
    if owner:
        metadata["ownerReferences"] = [{"apiVersion": "v1", "kind": "Service", "name": service_name, "uid": owner}]
    return metadata


def _label(text: str) -> str:
    """Return the text as the value of a label: at most 63 characters of a small set, a letter or digit at both ends."""
    return _LABEL.sub("-", text)[:63].strip("_.-")
