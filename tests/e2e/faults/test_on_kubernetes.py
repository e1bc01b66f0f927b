"""Topologies on a Kubernetes with two nodes, whose parts are lost in turn; commands have the rights of the README."""

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
from on_cluster import BACK_S, ClusterJournal, OnCluster

if TYPE_CHECKING:
    from heron_testing.heron_run import HeronRun
    from heron_testing.sandbox import Sandbox

_STATUS_S = 10.0
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

    def says(self, words: str, topology: str = "steady") -> None:
        """Wait until `heron status` has these words of Kubernetes."""

        def told() -> bool:
            run = self.sandbox.start_command("status", topology, "--profile", "kube")
            run.wait()
            return words in run.all_output

        wait_until(told, _STATUS_S, f"the status has {words!r}")


@pytest.fixture
def namespace(kubernetes: KubernetesServer, sandbox: Sandbox) -> Iterator[Namespace]:
    """A namespace for one test, in which the user has the rights of the README."""
    kubernetes.start()
    namespace = Namespace(kubernetes, sandbox)
    yield namespace
    kubernetes.start()
    kubernetes.remove_namespace(namespace.name)
    wait_until(lambda: not namespace.pods(), BACK_S, "all Pods are gone")  # of a failed test


class KubernetesHarm:
    """What happens to the containers of the topology ``journal``. Each method returns the containers that it ends."""

    def __init__(self, namespace: Namespace, journal: ClusterJournal) -> None:
        self.namespace, self.journal = namespace, journal
        self.kubernetes = namespace.kubernetes

    def containers_of(self, node: str) -> set[int]:
        """Return the containers on a node."""
        return {_container(pod) for pod, where in self.namespace.pods().items() if where == node}

    def delete_pod(self) -> set[int]:
        """``kubectl delete pod``: the StatefulSet makes it again."""
        self.kubernetes.request("DELETE", f"/api/v1/namespaces/{self.namespace.name}/pods/heron-journal-data-0")
        return {1}

    def drain_node(self) -> set[int]:
        """``kubectl drain``: the containers of the node end in order, and move."""
        node = self.namespace.pods()["heron-journal-data-0"]
        moved = self.containers_of(node)
        self.kubernetes.drain(node)
        wait_until(lambda: not self.containers_of(node), BACK_S, f"{node} is drained")
        self.kubernetes.cordon(node, closed=False)
        return moved

    def lose_api_server(self) -> set[int]:
        """Kill the API server for half a minute: no container notices, and commands say it."""
        self.kubernetes.api.kill()
        self.journal.flows_on("the end of the API server")
        self.namespace.says("does not answer", "journal")
        self.kubernetes.start()
        return set()

    def lose_node(self) -> set[int]:
        """Kill a node with all that runs on it until Kubernetes takes it for lost; its containers wait for it."""
        node = self.namespace.pods()["heron-journal-data-1"]
        lost = self.containers_of(node)
        self.kubernetes.nodes[node].kill()
        wait_until(lambda: node not in self.kubernetes.ready_nodes(), BACK_S, f"{node} is lost")
        self.kubernetes.start()
        return lost


@pytest.mark.parametrize("harm", ["delete_pod", "drain_node", "lose_api_server", "lose_node"])
def test_no_line_is_lost_whatever_kubernetes_does(namespace: Namespace, harm: str) -> None:
    """At least once: only the containers of these Pods restart, the status shows it, and all lines are counted."""
    journal = ClusterJournal(OnCluster(namespace.sandbox, "kube"))
    journal.harm([getattr(KubernetesHarm(namespace, journal), harm)])
    journal.let_go()
    namespace.leaves_nothing()


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


def test_containers_come_and_go_without_loss(namespace: Namespace) -> None:
    """From two containers to four and to one, while another topology runs beside: each number is counted once."""

    def places() -> int:
        return len([each for each in namespace.pods() if each.startswith("heron-updating-")])

    found = OnCluster(namespace.sandbox, "kube").update((2, 4, 1), places)
    assert found == [3, 5, 2], "and container 0"
    namespace.leaves_nothing()


def test_what_kubernetes_refuses_is_told_in_its_words(namespace: Namespace) -> None:
    """Within ten seconds; the topology manager does not run, so only the scheduler can tell."""
    cluster = OnCluster(namespace.sandbox, "kube")
    namespace.write_profile("missing:1")
    cluster.submit("steady.py")
    namespace.says("no such image: missing:1")
    cluster.output_of("kill", "steady")
    namespace.leaves_nothing()
    namespace.write_profile("here")
    quota: dict[str, object] = {"metadata": {"name": "small"}, "spec": {"hard": {"pods": "0"}}}
    namespace.create({"apiVersion": "v1", "kind": "ResourceQuota", **quota})
    cluster.submit("steady.py")
    namespace.says("exceeded quota: small")
    rights = f"/apis/rbac.authorization.k8s.io/v1/namespaces/{namespace.name}/rolebindings/user"
    binding = namespace.kubernetes.request("GET", rights)
    namespace.kubernetes.request("DELETE", rights)
    namespace.says('User "user" cannot get resource "services"')
    namespace.says("(403); grant the Role in the README of heron-scheduler-kubernetes")
    del binding["metadata"]["resourceVersion"], binding["metadata"]["uid"]
    namespace.kubernetes.request("POST", rights.rpartition("/")[0], binding)
    wait_until(lambda: _kills(cluster), BACK_S, "the user has the rights again")
    namespace.leaves_nothing()


def _kills(cluster: OnCluster) -> bool:
    run = cluster.sandbox.start_command("kill", "steady", "--profile", "kube")
    return run.wait() == 0


def _container(pod: str) -> int:
    """Return the container of a Pod of a topology that no update has changed."""
    part, number = pod.rsplit("-", 2)[1:]
    return 0 if part == "manager" else int(number) + 1
