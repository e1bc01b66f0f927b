"""The objects of a job: names that Kubernetes takes, stable places, requests, and no secret outside the Secret."""

from __future__ import annotations

import base64
import json
import re
from dataclasses import replace

import pytest

from heron.kernel.settings import EngineSettings
from heron.planner.packing_plan import NO_RESOURCE, Resource
from heron.spi.driver import DriverRef
from heron.spi.options import decode_options
from heron.spi.scheduler import ContainerSpec, Job
from heron_scheduler_kit.managed.managed_job import ManagedJob
from heron_scheduler_kit.managed.rest_api import Json, fields
from heron_scheduler_kubernetes.objects import (
    job_name,
    launch_secret,
    place_of,
    replicas,
    service,
    stateful_sets,
)
from heron_scheduler_kubernetes.options import KubernetesOptions

GIB = 2**30
STATE = DriverRef("statemgr", "zookeeper", "m:C", {"password": "s3cret"}, secrets=("s3cret",))
OPTIONS = KubernetesOptions(image="registry/heron:1", executor_cpu=0.1, executor_memory_mb=128)
POD_NAME = re.compile(r"[a-z]([-a-z0-9]{0,61}[a-z0-9])?")


def _spec(container_id: int, needs: Resource = NO_RESOURCE) -> ContainerSpec:
    return ContainerSpec(
        "words", "words-1", container_id, 1, "/run/t", "/log/t", "file:x", STATE, STATE, required=needs
    )


def _job(*containers: int, topology: str = "words") -> ManagedJob:
    job = Job(topology, f"{topology}-1", tuple(map(_spec, containers)), owner="ann@corp", role="ads", env="prod")
    return ManagedJob.of(job, OPTIONS, place_of)


def _at(document: object, *path: str | int) -> object:
    for step in path:
        document = document[step]  # type: ignore[index]
    return document


@pytest.mark.parametrize("topology", ["words", "Word_Count", "9" * 200, "---", "a" * 39, "A", "x-", "ends-in-dash-"])
def test_every_topology_has_a_name_that_kubernetes_takes(topology: str) -> None:
    """A Pod has the name of its StatefulSet and a number, and a revision has ten characters more."""
    name = job_name(topology)
    assert POD_NAME.fullmatch(f"{name}-manager-0")
    assert len(f"{name}-manager-0123456789") <= 63
    assert job_name(topology) == name


def test_names_are_those_of_the_topology_if_possible_and_never_shared() -> None:
    """People find a topology with `kubectl get pods`; two topologies must not have one StatefulSet."""
    assert job_name("word-count") == "heron-word-count"
    names = {job_name(each) for each in ("word-count", "word_count", "Word-Count", "word--count", "word-count-")}
    assert len(names) == 5


def test_a_place_is_stable_and_a_free_one_is_used_again() -> None:
    """A StatefulSet removes its last Pods only, so a removed container in the middle leaves a free Pod."""
    job = _job(0, 1, 2, 3)
    assert [each.place for each in job.containers] == [
        "heron-words-manager-0",
        *(f"heron-words-data-{number}" for number in range(3)),
    ]
    smaller = job.without([2])
    assert (replicas(smaller), smaller.request(3).place) == (3, "heron-words-data-2")
    again = smaller.with_added([_spec(7), _spec(8)], OPTIONS, place_of)
    assert [again.request(each).place for each in (7, 8)] == ["heron-words-data-1", "heron-words-data-3"]
    assert replicas(job.without([2, 3])) == 1
    assert replicas(job.without([1, 2, 3])) == 0


def test_secrets_are_in_the_secret_only() -> None:
    """Every user of a namespace may read Services and StatefulSets."""
    job = _job(0, 1)
    objects = json.dumps([service(job, OPTIONS), *stateful_sets(job, OPTIONS, "uid-1")])
    assert "s3cret" not in objects
    secret = launch_secret(job, OPTIONS, {"heron-words-data-0": b"file"}, "uid-1")
    assert secret["data"] == {"heron-words-data-0": base64.b64encode(b"file").decode()}
    assert _at(secret, "metadata", "ownerReferences", 0, "uid") == "uid-1"


def test_pods_request_the_largest_container_and_limit_memory() -> None:
    """All Pods of a StatefulSet have one size."""
    specs = (_spec(0), _spec(1, Resource(1.5, GIB, 0)), _spec(2, Resource(0.5, 2 * GIB, 3 * GIB)))
    job = ManagedJob.of(Job("words", "words-1", specs), OPTIONS, place_of)
    manager, data = (
        _at(each, "spec", "template", "spec", "containers", 0) for each in stateful_sets(job, OPTIONS, "u")
    )
    assert _at(data, "resources") == {
        "requests": {"cpu": "1600m", "memory": "2176Mi", "ephemeral-storage": "3072Mi"},
        "limits": {"memory": "2176Mi"},
    }
    assert _at(manager, "resources", "requests") == {"cpu": "600m", "memory": "512Mi"}
    command = ["python3", "-P", "-m", "heron_scheduler_kit.managed.launcher", "/heron/launch/$(HERON_POD)"]
    assert _at(data, "command") == command


def test_the_manager_keeps_off_the_nodes_of_its_standbys_above_all() -> None:
    """With fewer nodes than Pods, some Pods share a node; the topology managers must be the last to do so."""
    specs = tuple(replace(_spec(each), settings=EngineSettings(standbys=1).to_keys()) for each in range(4))
    sets = stateful_sets(ManagedJob.of(Job("words", "words-1", specs), OPTIONS, place_of), OPTIONS)
    path = "spec", "template", "spec", "affinity", "podAntiAffinity", "preferredDuringSchedulingIgnoredDuringExecution"
    manager, data = (_at(each, *path) for each in sets)
    assert _at(data, 0) == _at(manager, 0)
    assert len(data) == 1  # type: ignore[arg-type]
    selector = "podAffinityTerm", "labelSelector", "matchExpressions", 0, "values"
    assert _at(manager, 1, *selector) == ["heron-words-data-0"]


def test_people_find_topology_owner_and_role_by_labels() -> None:
    """Values of labels have few characters; others are replaced."""
    labels = _at(service(_job(0), OPTIONS), "metadata", "labels")
    assert isinstance(labels, dict)
    assert labels["heron.io/topology"] == "words"
    assert labels["heron.io/owner"] == "ann-corp"
    assert (labels["heron.io/role"], labels["heron.io/env"]) == ("ads", "prod")


def test_fields_of_the_profile_are_added_and_those_of_the_scheduler_stay() -> None:
    """Where Pods may run is the affair of the cluster; what runs in them is that of the scheduler."""
    options = decode_options(
        {"image": "i", "pod": {"nodeSelector": {"disk": "ssd"}}, "run_as_user": 1000, "cpu_limit": True},
        KubernetesOptions,
        "scheduler",
    )
    pod = _at(stateful_sets(_job(0, 1), options, "u")[1], "spec", "template", "spec")
    assert _at(pod, "nodeSelector") == {"disk": "ssd"}
    assert _at(pod, "securityContext", "runAsNonRoot") is True
    assert _at(pod, "volumes", 0, "secret", "defaultMode") == 0o440
    with pytest.raises(Exception, match="pod: containers cannot be set"):
        decode_options({"image": "i", "pod": {"containers": []}}, KubernetesOptions, "scheduler")


def _pods(*avoided: str, options: KubernetesOptions = OPTIONS) -> list[Json]:
    sets = stateful_sets(_job(0, 1), options, avoided=avoided)
    return [fields(fields(fields(each["spec"])["template"])["spec"]) for each in sets]


def test_pods_keep_away_from_blocked_nodes() -> None:
    """Each term of a node selector is enough by itself, so a rule of the profile is kept in each of them."""
    required = "requiredDuringSchedulingIgnoredDuringExecution"
    rules = [{"key": "metadata.name", "operator": "NotIn", "values": [each]} for each in ("n1", "n2")]
    for pod in _pods("n2", "n1"):
        affinity = fields(pod["affinity"])
        assert "podAntiAffinity" in affinity
        assert fields(affinity["nodeAffinity"])[required] == {"nodeSelectorTerms": [{"matchFields": rules}]}
    fast = {"matchExpressions": [{"key": "disk", "operator": "In", "values": ["fast"]}]}
    given: dict[str, object] = {"affinity": {"nodeAffinity": {required: {"nodeSelectorTerms": [fast]}}}}
    options = KubernetesOptions(image="registry/heron:1", pod=given)
    for pod in _pods("n1", options=options):
        terms = fields(fields(fields(pod["affinity"])["nodeAffinity"])[required])["nodeSelectorTerms"]
        assert terms == [{**fast, "matchFields": rules[:1]}]


def test_without_blocked_nodes_nothing_is_required() -> None:
    """A StatefulSet whose template does not change has no new revision."""
    assert all("nodeAffinity" not in fields(pod["affinity"]) for pod in _pods())
