"""A topology on a Kubernetes with two nodes, whose parts are lost in turn; no line is lost."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from heron_testing.waiting import wait_until
from heron_testing_servers.kubernetes import KubernetesServer
from kubernetes_namespace import Namespace, fresh_namespace
from on_cluster import BACK_S, ClusterJournal
from wheel_archive import bare_interpreter, write_wheel_archive

if TYPE_CHECKING:
    from heron_testing.sandbox import Sandbox


@pytest.fixture
def namespace(kubernetes: KubernetesServer, sandbox: Sandbox) -> Iterator[Namespace]:
    """A namespace for one test."""
    with fresh_namespace(kubernetes, sandbox) as namespace:
        yield namespace


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
    journal = ClusterJournal(namespace.commands)
    harm = KubernetesHarm(namespace, journal)
    for each in harms.split():
        journal.survives(getattr(harm, each))
    journal.let_go()
    namespace.leaves_nothing()


def test_a_standby_on_another_node_takes_over(namespace: Namespace) -> None:
    """The Pods of the topology manager and of its standby have different nodes, although there are three Pods."""
    journal = ClusterJournal(namespace.commands, "--set", "topology.tmanager.standbys=1")

    def nodes() -> dict[int, str]:
        return {_container(pod): node for pod, node in namespace.pods().items()}

    journal.loses_leader(nodes, lambda node: namespace.kubernetes.nodes[node].kill())
    namespace.kubernetes.start()
    journal.flows("the loss of the leader")
    journal.let_go()
    namespace.leaves_nothing()


@pytest.mark.chaos
@pytest.mark.parametrize("seed", [74])
def test_no_line_is_lost_in_minutes_of_faults(namespace: Namespace, seed: int) -> None:
    """Processes, Pods, nodes and the API server are killed in any order."""
    journal = ClusterJournal(namespace.commands)
    harm = KubernetesHarm(namespace, journal)
    of_pods = (journal.kill_executor, journal.kill_launcher, harm.delete_pod)
    journal.survives_minutes(seed, (*of_pods, harm.drain_node, harm.lose_node, harm.lose_api_server))
    journal.let_go()
    namespace.leaves_nothing()


def test_a_bare_interpreter_runs_a_topology_from_wheels(namespace: Namespace) -> None:
    """`scheduler.install: wheels`: the image has Python alone; containers start from the wheels, also again."""
    bare = bare_interpreter()
    archive = namespace.sandbox.root / "wheels.zip"
    wheels = write_wheel_archive(["heron-bundle-local", "heron-scheduler-kubernetes"], archive)
    namespace.write_profile("install: wheels", f"wheels: {wheels}", python=bare)
    journal = ClusterJournal(namespace.commands)
    for harm in (journal.kill_launcher, KubernetesHarm(namespace, journal).delete_pod):
        journal.survives(harm)
    assert {Path(each.exe()).resolve() for each in journal.lines.run.processes("executor")} == {bare.resolve()}
    journal.let_go()
    namespace.leaves_nothing()


def _container(pod: str) -> int:
    """Return the container of a Pod of a topology that no update has changed."""
    part, number = pod.rsplit("-", 2)[1:]
    return 0 if part == "manager" else int(number) + 1
