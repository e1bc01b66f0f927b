"""Topologies on a Kubernetes with two nodes; commands have the rights of the README."""

from __future__ import annotations

import secrets
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import yaml

from heron_scheduler_kubernetes.access_rules import NEEDED
from heron_testing.waiting import wait_until
from heron_testing_servers.kubernetes import KubernetesServer
from on_cluster import BACK_S, OnCluster

if TYPE_CHECKING:
    from heron_testing.heron_run import HeronRun
    from heron_testing.sandbox import Sandbox

_LOOPS = 30
_PROFILE = """\
extends: local
scheduler:
  driver: kubernetes
  image: {image}
  python: {python}
  kubeconfig: {kubeconfig}
  stable_s: 0
  stop_grace_s: 3
  start_s: 60
  env: {{HOME: "{home}", TMPDIR: "{tmp}"}}  # all that runs in the cluster belongs to the sandbox, which looks for it
engine: {{heron.executor.stable.s: 0}}
"""
_RULES = [
    {"apiGroups": [group], "resources": [resource], "verbs": [*verbs]} for (group, resource), verbs in NEEDED.items()
]


class Namespace:
    """A namespace of the cluster, and the profile ``kube`` for it."""

    def __init__(self, kubernetes: KubernetesServer, sandbox: Sandbox) -> None:
        self.kubernetes, self.sandbox = kubernetes, sandbox
        self.name = f"heron-{secrets.token_hex(4)}"
        kubernetes.make_namespace(self.name, _RULES)
        self.write_profile("here")

    def write_profile(self, image: str) -> None:
        """Write the profile, with this image."""
        text = _PROFILE.format(
            image=image,
            python=sys.executable,
            kubeconfig=self.kubernetes.kubeconfig("user", self.name),
            home=self.sandbox.home,
            tmp=self.sandbox.tmp,
        )
        self.sandbox.write_profile("kube", text)

    def pods(self) -> dict[str, str]:
        """Return the nodes of the Pods, by their names."""
        found = self.kubernetes.pods(self.name)
        return {name: str(each["spec"].get("nodeName", "")) for name, each in found.items()}

    def create(self, document: dict[str, object]) -> None:
        """Make an object, as ``kubectl create`` does."""
        root = "api" if document["apiVersion"] == "v1" else "apis"
        path = f"/{root}/{document['apiVersion']}/namespaces/{self.name}/{str(document['kind']).lower()}s"
        self.kubernetes.request("POST", path, document)

    def leaves_nothing(self) -> None:
        """Check that the namespace has no object of a topology."""
        assert self.pods() == {}
        for kind in ("api/v1", "services"), ("api/v1", "secrets"), ("apis/apps/v1", "statefulsets"):
            assert self.kubernetes.request("GET", f"/{kind[0]}/namespaces/{self.name}/{kind[1]}")["items"] == []


@pytest.fixture
def namespace(kubernetes: KubernetesServer, sandbox: Sandbox) -> Iterator[Namespace]:
    """A namespace for one test, in which the user has the rights of the README."""
    kubernetes.start()
    namespace = Namespace(kubernetes, sandbox)
    yield namespace
    kubernetes.start()
    kubernetes.remove_namespace(namespace.name)
    wait_until(lambda: not namespace.pods(), BACK_S, "all Pods are gone")  # of a failed test


def test_the_example_counts_exactly(namespace: Namespace, examples: Path) -> None:
    """The commands of the README: check, submit, status. The counts are those of the text."""
    assert f"namespace {namespace.name}" in namespace.sandbox.output_of("profiles", "check", "kube")
    status = OnCluster(namespace.sandbox, "kube").count_example(examples, _LOOPS)
    assert "node-" in status
    namespace.leaves_nothing()


def test_the_objects_of_a_dry_run_run_the_topology(namespace: Namespace, examples: Path) -> None:
    """`heron submit --dry-run -o yaml | kubectl create -f -`: container 0 stores what no command has."""
    cluster = OnCluster(namespace.sandbox, "kube")

    def create(dry_run: HeronRun) -> None:
        assert namespace.pods() == {}
        assert not namespace.sandbox.remaining()
        for document in yaml.safe_load_all(dry_run.stdout):
            namespace.create(document)
        wait_until(lambda: cluster.status("word_count"), BACK_S, "the topology has a status")

    status = cluster.count_example(examples, _LOOPS, create, ("--dry-run", "-o", "yaml"))
    assert "node-" in status
    namespace.leaves_nothing()
