"""A Kubernetes with API server, controllers and scheduler, whose nodes run Pods as processes of this machine.

The servers are one program, built from source. A node is a `process_kubelet`: it runs the command of a Pod, mounts its
Secrets, restarts it, and reports it. There are no images and no isolation; the image ``missing`` cannot be pulled.
"""

from __future__ import annotations

import http.client
import json
import ssl
import subprocess
import sys
import urllib.request
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from heron_testing.ports import free_port
from heron_testing.waiting import wait_until
from heron_testing_servers import process_kubelet
from heron_testing_servers.install import go_sources, installed
from heron_testing_servers.server_process import ServerProcess, answers, listens

__all__ = ["APPLY", "FIXTURES", "KubernetesServer"]

APPLY = "application/apply-patch+yaml"
"""The type of a PATCH that is a server-side apply."""

FIXTURES = ("kubernetes",)

_VERSION = "1.33.13"
_ETCD = "3.5.21"
_HOST = "127.0.0.1"
_ADMIN, _USER = "admin-token", "user-token"  # for servers on the loopback address that end with the tests
_ANSWER_S = 5.0
_READY_S = 60.0
_CONTROLLERS: dict[str, object] = {
    "controllers": "*,-node-ipam-controller,-service-lb-controller,-node-route-controller",
    "node-monitor-period": "1s",
    "node-monitor-grace-period": "10s",  # a killed node counts as lost after this time, not 50 s
}

_STAGING = """
    api apiextensions-apiserver apimachinery apiserver cli-runtime client-go cloud-provider cluster-bootstrap
    code-generator component-base component-helpers controller-manager cri-api cri-client csi-translation-lib
    dynamic-resource-allocation endpointslice externaljwt kms kube-aggregator kube-controller-manager kube-proxy
    kube-scheduler kubectl kubelet metrics mount-utils pod-security-admission sample-apiserver sample-cli-plugin
    sample-controller
"""
_MODULE = "\n".join(
    (
        "module hyperkube",
        "go 1.24.0",
        f"require go.etcd.io/etcd/server/v3 v{_ETCD}",
        f"require k8s.io/component-base v0{_VERSION[1:]}",
        f"require k8s.io/kubernetes v{_VERSION}",
        *(f"replace k8s.io/{each} => k8s.io/{each} v0{_VERSION[1:]}" for each in _STAGING.split()),
        "",
    )
)
_MAIN = """package main

import (
	"os"

	"go.etcd.io/etcd/server/v3/etcdmain"
	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	_ "k8s.io/component-base/metrics/prometheus/version"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllers "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
)

func main() {
	os.Args = os.Args[1:]
	switch os.Args[0] {
	case "etcd":
		etcdmain.Main(os.Args)
	case "kube-apiserver":
		os.Exit(cli.Run(apiserver.NewAPIServerCommand()))
	case "kube-controller-manager":
		os.Exit(cli.Run(controllers.NewControllerManagerCommand()))
	case "kube-scheduler":
		os.Exit(cli.Run(scheduler.NewSchedulerCommand()))
	}
}
"""
_LINKED = " ".join(
    f"-X k8s.io/component-base/version.{name}={value}"
    for name, value in (("gitVersion", f"v{_VERSION}"), ("gitMajor", "1"), ("gitMinor", "33"))
)


class KubernetesServer:
    """One API server with its helpers, and nodes. Each process can be killed and started alone."""

    def __init__(self, folder: Path, nodes: int = 2) -> None:
        """Build the program into the cache if it is absent; that takes ten minutes.

        Raises:
            ServerNotInstalledError: when there is no Go, or the build fails.
        """
        self.folder = folder
        self.address = (_HOST, free_port())
        """The address of the API server: host and port."""
        self.url = f"https://{_HOST}:{self.address[1]}"
        """The same address as a URL."""
        self._pki = folder / "pki"
        self._pki.mkdir(parents=True, exist_ok=True)
        sources = {"go.mod": _MODULE, "main.go": _MAIN}
        built = installed(f"kubernetes-{_VERSION}", go_sources(sources, "hyperkube", _LINKED))
        self._program = str(built / "bin" / "hyperkube")
        (self._pki / "tokens.csv").write_text(f"{_ADMIN},admin,admin,system:masters\n{_USER},user,user\n")
        self._key = self._pki / "accounts.key"
        subprocess.run(["openssl", "genrsa", "-out", str(self._key), "2048"], check=True, capture_output=True)
        self._admin = self.kubeconfig("admin")
        self.etcd, self.api = self._etcd(), self._apiserver()
        """The processes that keep the objects."""
        self.controllers = self._helper(
            "kube-controller-manager", _CONTROLLERS | {"service-account-private-key-file": self._key}
        )
        """Makes the Pods of StatefulSets."""
        self.scheduler = self._helper("kube-scheduler", {})
        """Chooses the node of each Pod."""
        self.nodes = {f"node-{number}": self._node(f"node-{number}") for number in range(1, nodes + 1)}
        """The nodes by name. The processes of a node's Pods end with it."""

    def start(self) -> None:
        """Start the processes that do not run; return when all nodes are ready.

        Raises:
            ServerError: when one of them does not start within a minute.
        """
        for each in (self.etcd, self.api, self.controllers, self.scheduler, *self.nodes.values()):
            each.start()
        wait_until(lambda: self.ready_nodes() == set(self.nodes), _READY_S, "all nodes are ready")

    def kill(self) -> None:
        """End all with SIGKILL, including the processes of Pods; idempotent."""
        for each in (*self.nodes.values(), self.scheduler, self.controllers, self.api, self.etcd):
            each.kill()

    def ready_nodes(self) -> set[str]:
        """Return the names of the nodes that the API server takes for ready."""
        found = set()
        for each in self.request("GET", "/api/v1/nodes")["items"]:
            conditions = each["status"].get("conditions") or []
            if any((one["type"], one["status"]) == ("Ready", "True") for one in conditions):
                found.add(each["metadata"]["name"])
        return found

    def kubeconfig(self, user: str = "user", namespace: str = "default", port: int = 0) -> Path:
        """Return a kubeconfig for ``admin``, who may do everything, or ``user``, who has the rights of `allow`.

        `port` is that of a relay on the loopback address, in place of the API server's.
        """
        server = f"https://{_HOST}:{port or self.address[1]}"
        cluster = {"server": server, "certificate-authority": str(self._pki / "apiserver.crt")}
        token = _ADMIN if user == "admin" else _USER
        document = {
            "current-context": "tests",
            "contexts": [{"name": "tests", "context": {"cluster": "tests", "user": user, "namespace": namespace}}],
            "clusters": [{"name": "tests", "cluster": cluster}],
            "users": [{"name": user, "user": {"token": token}}],
        }
        path = self.folder / f"{user}-{namespace}-{port}.kubeconfig"
        path.write_text(json.dumps(document))  # JSON is YAML
        return path

    def make_namespace(self, name: str, rules: Sequence[Mapping[str, object]] = ()) -> None:
        """Make a namespace in which ``user`` has the rights of these rules of a Role, and no others."""
        self.request("POST", "/api/v1/namespaces", {"metadata": {"name": name}})
        roles = f"/apis/rbac.authorization.k8s.io/v1/namespaces/{name}"
        self.request("POST", f"{roles}/roles", {"metadata": {"name": "user"}, "rules": list(rules)})
        reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "user"}
        subject = {"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "user"}
        binding = {"metadata": {"name": "user"}, "roleRef": reference, "subjects": [subject]}
        self.request("POST", f"{roles}/rolebindings", binding)

    def remove_namespace(self, name: str) -> None:
        """Order the removal of a namespace and all in it."""
        self.request("DELETE", f"/api/v1/namespaces/{name}")

    def pods(self, namespace: str) -> dict[str, Any]:
        """Return the Pods of a namespace by name."""
        items = self.request("GET", f"/api/v1/namespaces/{namespace}/pods")["items"]
        return {each["metadata"]["name"]: each for each in items}

    def cordon(self, node: str, *, closed: bool = True) -> None:
        """Let a node take no new Pods, or take them again."""
        self.request("PATCH", f"/api/v1/nodes/{node}", {"spec": {"unschedulable": closed}})

    def drain(self, node: str) -> None:
        """Cordon a node and evict its Pods in order, as ``kubectl drain`` does; it does not wait for their end."""
        self.cordon(node)
        for each in self.request("GET", f"/api/v1/pods?fieldSelector=spec.nodeName={node}")["items"]:
            self.evict(each["metadata"]["namespace"], each["metadata"]["name"])

    def evict(self, namespace: str, pod: str) -> None:
        """Evict a Pod in order, as a drain of its node does."""
        body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": pod}}
        self.request("POST", f"/api/v1/namespaces/{namespace}/pods/{pod}/eviction", body)

    def request(self, method: str, path: str, body: Mapping[str, object] | None = None, kind: str = "") -> Any:  # noqa: ANN401 - JSON of any shape
        """Send a request as ``admin`` and return the answer as plain data; `kind` is the type of another body.

        Raises:
            urllib.error.URLError: when the server refuses or does not answer.
        """
        return json.loads(self._send(method, path, body, kind))

    def _send(self, method: str, path: str, body: Mapping[str, object] | None = None, kind: str = "") -> bytes:
        kind = kind or ("application/merge-patch+json" if method == "PATCH" else "application/json")
        headers = {"Authorization": f"Bearer {_ADMIN}", "Content-Type": kind}
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data, headers, method=method)  # noqa: S310 - our own server
        with urllib.request.urlopen(request, timeout=_ANSWER_S, context=self._tls()) as answer:  # noqa: S310
            return bytes(answer.read())

    def _tls(self) -> ssl.SSLContext:
        return ssl.create_default_context(cafile=str(self._pki / "apiserver.crt"))

    def _etcd(self) -> ServerProcess:
        self._etcd_url, peer = f"http://{_HOST}:{free_port()}", f"http://{_HOST}:{free_port()}"
        options = {
            "data-dir": str(self.folder / "etcd"),
            "listen-client-urls": self._etcd_url,
            "advertise-client-urls": self._etcd_url,
            "listen-peer-urls": peer,
            "initial-advertise-peer-urls": peer,
            "initial-cluster": f"default={peer}",
        }
        command = [self._program, "etcd", *(f"--{name}={value}" for name, value in options.items())]
        return ServerProcess(
            [*command, "--unsafe-no-fsync"], self.folder / "etcd.log", lambda: answers(f"{self._etcd_url}/health")
        )

    def _apiserver(self) -> ServerProcess:
        options = {
            "etcd-servers": self._etcd_url,
            "bind-address": _HOST,
            "advertise-address": _HOST,
            "secure-port": self.address[1],
            "cert-dir": self._pki,
            "token-auth-file": self._pki / "tokens.csv",
            "authorization-mode": "RBAC",
            "service-cluster-ip-range": "10.96.0.0/16",
            "service-account-issuer": "https://kubernetes.default.svc",
            "service-account-key-file": self._key,
            "service-account-signing-key-file": self._key,
            "disable-admission-plugins": "ServiceAccount",
            "endpoint-reconciler-type": "none",
            "kubelet-preferred-address-types": "InternalIP",
        }
        command = [self._program, "kube-apiserver", *(f"--{name}={value}" for name, value in options.items())]
        return ServerProcess(command, self.folder / "apiserver.log", self._api_answers)

    def _api_answers(self) -> bool:
        try:
            self._send("GET", "/readyz")  # before that, it does not know the rights of users
            self._send("GET", "/api/v1/namespaces/default")
        except (OSError, http.client.HTTPException):
            return False
        return True

    def _helper(self, name: str, own: Mapping[str, object]) -> ServerProcess:
        port = free_port()
        configs = ("kubeconfig", "authentication-kubeconfig", "authorization-kubeconfig")
        options = {
            **dict.fromkeys(configs, self._admin),
            "bind-address": _HOST,
            "secure-port": port,
            "cert-dir": self._pki,
            "leader-elect": "false",
            "authentication-skip-lookup": "true",
            **own,
        }
        command = [self._program, name, *(f"--{key}={value}" for key, value in options.items())]
        return ServerProcess(command, self.folder / f"{name}.log", lambda: listens(port))

    def _node(self, name: str) -> ServerProcess:
        port = free_port()
        folder = self.folder / name
        folder.mkdir(exist_ok=True)
        program = [sys.executable, "-P", process_kubelet.__file__]
        words = [*program, name, self.url, _ADMIN, str(self._pki), str(folder), str(port)]
        return ServerProcess(words, folder / "kubelet.log", lambda: name in self.ready_nodes())
