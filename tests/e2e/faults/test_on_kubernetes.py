"""Topologies on a Kubernetes with two nodes; commands have the rights of the README."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import yaml

from heron_testing.waiting import wait_until
from heron_testing_servers.kubernetes import KubernetesServer
from heron_testing_servers.s3 import S3Server
from heron_testing_servers.zookeeper import ZooKeeperServer
from kubernetes_namespace import Namespace, fresh_namespace
from on_cluster import BACK_S, OnCluster, shipped_profile

if TYPE_CHECKING:
    from heron_testing.heron_run import HeronRun
    from heron_testing.sandbox import Sandbox

_LOOPS = 30


@pytest.fixture
def namespace(kubernetes: KubernetesServer, sandbox: Sandbox) -> Iterator[Namespace]:
    """A namespace for one test."""
    with fresh_namespace(kubernetes, sandbox) as namespace:
        yield namespace


def test_the_example_counts_exactly(namespace: Namespace, examples: Path) -> None:
    """The commands of the README: check, submit, status. The counts are those of the text."""
    assert f"namespace {namespace.name}" in namespace.sandbox.output_of("profiles", "check", "kube")
    status = namespace.commands.count_example(examples, _LOOPS)
    assert "node-" in status
    namespace.leaves_nothing()


def test_the_shipped_profile_counts_exactly(
    namespace: Namespace, zookeeper: ZooKeeperServer, s3: S3Server, examples: Path
) -> None:
    """State in ZooKeeper, packages in S3: `heron profiles check kubernetes` asks all three servers."""
    namespace.sandbox.environ["HERON_IMAGE"] = "here"
    kubeconfig = str(namespace.kubernetes.kubeconfig("user", namespace.name))
    options = {"kubeconfig": kubeconfig, "python": sys.executable, "env": {"HOME": str(namespace.sandbox.home)}}
    says = f"namespace {namespace.name}"
    shipped = shipped_profile(namespace.sandbox, "kubernetes", options, says, (zookeeper, s3))
    shipped.count_example(examples, _LOOPS)
    namespace.leaves_nothing()


def test_the_objects_of_a_dry_run_run_the_topology(namespace: Namespace, examples: Path) -> None:
    """`heron submit --dry-run -o yaml | kubectl apply --server-side -f -`: container 0 stores what no command has.

    `kubectl create` would take the objects too, and to apply them again changes none.
    """
    cluster = namespace.commands

    def create(dry_run: HeronRun) -> None:
        assert namespace.pods() == {}
        assert not namespace.sandbox.remaining()
        documents = list(yaml.safe_load_all(dry_run.stdout))
        for each in documents:
            namespace.create(each, "dryRun=All")
        versions = [namespace.apply(each) for each in documents]
        secret = [each["kind"] for each in documents].index("Secret")
        assert namespace.apply(documents[secret]) == versions[secret]
        wait_until(lambda: cluster.status("word_count"), BACK_S, "the topology has a status")

    status = cluster.count_example(examples, _LOOPS, create, ("--dry-run", "-o", "yaml"))
    assert "node-" in status
    namespace.leaves_nothing()


def test_containers_come_and_go_without_loss(namespace: Namespace) -> None:
    """From two containers to four and to one, while another topology runs beside: each number is counted once.

    With one task of `pass`, container 2 is removed, whose Pod is not the last one: it waits for the next container.
    """

    def pods() -> int:
        return len([each for each in namespace.pods() if each.startswith("heron-updating-")])

    steps = {
        "--container-number 2": 3,
        "--container-number 4": 5,
        "--component-parallelism pass:1": 5,
        "--component-parallelism pass:2 --container-number 4": 5,
        "--container-number 1": 2,
    }
    namespace.commands.update(steps, pods)
    namespace.leaves_nothing()


def test_what_kubernetes_refuses_is_told_in_its_words(namespace: Namespace) -> None:
    """Within ten seconds; the topology manager does not run, so only the scheduler can tell."""
    cluster = namespace.commands
    namespace.write_profile(image="missing:1")
    cluster.submit("steady.py")
    namespace.says("no such image: missing:1")
    cluster.output_of("kill", "steady")
    namespace.leaves_nothing()
    namespace.write_profile()
    quota: dict[str, object] = {"metadata": {"name": "small"}, "spec": {"hard": {"pods": "0"}}}
    namespace.create({"apiVersion": "v1", "kind": "ResourceQuota", **quota})
    cluster.submit("steady.py")
    namespace.says("exceeded quota: small")
    rights = f"/apis/rbac.authorization.k8s.io/v1/namespaces/{namespace.name}/rolebindings/user"
    binding = namespace.kubernetes.request("GET", rights)
    namespace.kubernetes.request("DELETE", rights)
    namespace.says(
        'User "user" cannot get resource "services"',
        "(403); grant the Role in the README of heron-scheduler-kubernetes",
    )
    del binding["metadata"]["resourceVersion"], binding["metadata"]["uid"]
    namespace.kubernetes.request("POST", rights.rpartition("/")[0], binding)
    wait_until(lambda: _kills(cluster), BACK_S, "the user has the rights again")
    namespace.leaves_nothing()


def _kills(cluster: OnCluster) -> bool:
    run = cluster.sandbox.start_command("kill", "steady", "--profile", "kube")
    return run.wait() == 0
