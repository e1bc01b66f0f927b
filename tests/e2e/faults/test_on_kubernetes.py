"""Topologies on a Kubernetes with two nodes, whose parts are lost in turn; commands have the rights of the README."""

from __future__ import annotations

import secrets
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import yaml

from heron.clock import monotonic_s
from heron_scheduler_kubernetes.access_rules import NEEDED
from heron_testing.waiting import wait_until
from heron_testing_servers.kubernetes import KubernetesServer
from on_cluster import BACK_S, ClusterJournal, OnCluster
from wheel_archive import write_wheel_archive

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
  kubeconfig: {kubeconfig}
  {options}
  stable_s: 0
  stop_grace_s: 3
  start_s: 60
  env: {{HOME: "{home}"}}  # all that runs in the cluster belongs to the sandbox, which looks for it
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
        self.write_profile()

    def write_profile(self, *options: str, image: str = "here", python: Path = Path(sys.executable)) -> None:
        """Write the profile, with further options of the scheduler."""
        text = _PROFILE.format(
            image=image,
            kubeconfig=self.kubernetes.kubeconfig("user", self.name),
            options="\n  ".join((f"python: {python}", *options)),
            home=self.sandbox.home,
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

    def says(self, *words: str, topology: str = "steady") -> None:
        """Wait until `heron status` has these words of Kubernetes, and check that it takes at most ten seconds."""
        began_s = monotonic_s()

        def told() -> bool:
            run = self.sandbox.start_command("status", topology, "--profile", "kube", "--timeout", "1")
            run.wait()
            return all(each in run.all_output for each in words)

        wait_until(told, _STATUS_S, f"the status has {words}")
        took_s = monotonic_s() - began_s
        assert took_s <= _STATUS_S, words
        print(f"{took_s:.1f} s: {words}")  # noqa: T201 - for a run by hand


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
        self.namespace.says("does not answer", topology="journal")
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


@pytest.mark.parametrize("harms", ["delete_pod", "drain_node drain_node", "lose_api_server", "lose_node"])
def test_no_line_is_lost_whatever_kubernetes_does(namespace: Namespace, harms: str) -> None:
    """At least once: only the containers of these Pods restart, the status shows it, and all lines are counted.

    The first drain leaves all containers on one node, so the second one moves them all.
    """
    journal = ClusterJournal(OnCluster(namespace.sandbox, "kube"))
    harm = KubernetesHarm(namespace, journal)
    for each in harms.split():
        journal.survives(getattr(harm, each))
    journal.let_go()
    namespace.leaves_nothing()


@pytest.mark.chaos
@pytest.mark.parametrize("seed", [74])
def test_no_line_is_lost_in_minutes_of_faults(namespace: Namespace, seed: int) -> None:
    """Processes, Pods, nodes and the API server are killed in any order."""
    journal = ClusterJournal(OnCluster(namespace.sandbox, "kube"))
    harm = KubernetesHarm(namespace, journal)
    of_pods = (journal.kill_executor, journal.kill_launcher, harm.delete_pod)
    journal.survives_minutes(seed, (*of_pods, harm.drain_node, harm.lose_node, harm.lose_api_server))
    journal.let_go()
    namespace.leaves_nothing()


def test_a_bare_interpreter_runs_a_topology_from_wheels(namespace: Namespace) -> None:
    """`scheduler.install: wheels`: the image has Python alone; containers start from the wheels, also again."""
    bare = Path(sys.base_prefix, "bin", f"python3.{sys.version_info[1]}")
    without = subprocess.run([bare, "-P", "-c", "import heron"], capture_output=True, text=True, check=False)
    assert "No module named 'heron'" in without.stderr
    archive = namespace.sandbox.root / "wheels.zip"
    wheels = write_wheel_archive(["heron-bundle-local", "heron-scheduler-kubernetes"], archive)
    namespace.write_profile("install: wheels", f"wheels: {wheels}", python=bare)
    journal = ClusterJournal(OnCluster(namespace.sandbox, "kube"))
    for harm in (journal.kill_launcher, KubernetesHarm(namespace, journal).delete_pod):
        journal.survives(harm)
    assert {Path(each.exe()).resolve() for each in journal.lines.run.processes("executor")} == {bare.resolve()}
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
    OnCluster(namespace.sandbox, "kube").update(steps, pods)
    namespace.leaves_nothing()


def test_what_kubernetes_refuses_is_told_in_its_words(namespace: Namespace) -> None:
    """Within ten seconds; the topology manager does not run, so only the scheduler can tell."""
    cluster = OnCluster(namespace.sandbox, "kube")
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


def _container(pod: str) -> int:
    """Return the container of a Pod of a topology that no update has changed."""
    part, number = pod.rsplit("-", 2)[1:]
    return 0 if part == "manager" else int(number) + 1
