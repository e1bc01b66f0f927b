"""A namespace of a Kubernetes with two nodes, in which the user has the rights of the README, and a profile for it."""

from __future__ import annotations

import secrets
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from heron.clock import monotonic_s
from heron.errors import SchedulerError
from heron_cli.client import connect
from heron_scheduler_kubernetes.access_rules import NEEDED
from heron_testing.waiting import wait_until
from heron_testing_servers.kubernetes import APPLY, KubernetesServer
from on_cluster import BACK_S, OnCluster

if TYPE_CHECKING:
    from heron_testing.sandbox import Sandbox

__all__ = ["Namespace", "fresh_namespace"]

_STATUS_S = 10.0
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
        self.commands = OnCluster(sandbox, "kube")
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

    def create(self, document: dict[str, object], query: str = "") -> None:
        """Make an object, as ``kubectl create`` does."""
        self.kubernetes.request("POST", f"{self._collection(document)}?{query}", document)

    def apply(self, document: dict[str, Any]) -> str:
        """Make or change an object, as ``kubectl apply --server-side`` does; return its version."""
        path = f"{self._collection(document)}/{document['metadata']['name']}?fieldManager=kubectl"
        return str(self.kubernetes.request("PATCH", path, document, APPLY)["metadata"]["resourceVersion"])

    def leaves_nothing(self) -> None:
        """Check that the namespace has no object of a topology."""
        assert self.pods() == {}
        for kind in ("api/v1", "services"), ("api/v1", "secrets"), ("apis/apps/v1", "statefulsets"):
            assert self.kubernetes.request("GET", f"/{kind[0]}/namespaces/{self.name}/{kind[1]}")["items"] == []

    def _collection(self, document: Mapping[str, object]) -> str:
        root = "api" if document["apiVersion"] == "v1" else "apis"
        return f"/{root}/{document['apiVersion']}/namespaces/{self.name}/{str(document['kind']).lower()}s"

    def says(self, *words: str, topology: str = "steady") -> None:
        """Check that Kubernetes says these words about a job within ten seconds, and that `heron status` has them.

        This process takes the time: a command needs a second of a processor, for which a busy machine takes ten.
        """
        began_s = monotonic_s()
        wait_until(lambda: all(each in self._answer(topology) for each in words), _STATUS_S, f"the job has {words}")
        took_s = monotonic_s() - began_s
        assert took_s <= _STATUS_S, words
        print(f"{took_s:.1f} s: {words}")  # noqa: T201 - for a run by hand
        run = self.sandbox.start_command("status", topology, "--profile", "kube", "--timeout", "1")
        run.wait()
        shown = " ".join(run.all_output.split())
        assert all(each in shown for each in words), run.all_output

    def _answer(self, topology: str) -> str:
        """Return what the scheduler answers about a job."""
        home = self.sandbox.home / ".heron"
        overrides = {"statemgr.root": str(home / "state")}
        with connect("kube", config_path=home / "profiles", overrides=overrides, read_only=True) as client:
            try:
                return str(client.topology(topology).job())
            except SchedulerError as error:
                return str(error)


@contextmanager
def fresh_namespace(kubernetes: KubernetesServer, sandbox: Sandbox) -> Iterator[Namespace]:
    """Make a namespace for one test."""
    kubernetes.start()
    namespace = Namespace(kubernetes, sandbox)
    yield namespace
    kubernetes.start()
    kubernetes.remove_namespace(namespace.name)
    wait_until(lambda: not namespace.pods(), BACK_S, "all Pods are gone")  # of a failed test
