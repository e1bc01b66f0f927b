"""A node of Kubernetes that runs Pods as processes: ``python process_kubelet.py NODE URL TOKEN PKI FOLDER PORT``.

It starts the command of the only container of each Pod that is bound to the node, with the variables of the Pod. Paths
below the mounts of Secrets become paths of a folder of the Pod, and TMPDIR names such a folder. It restarts the command
with a back-off, sends SIGTERM and SIGKILL when the Pod is deleted, reports states, and serves the output. The image
``missing`` cannot be pulled. All processes end with this one.
"""

from __future__ import annotations

import base64
import http.client
import http.server
import json
import queue
import shutil
import signal
import ssl
import subprocess
import sys
import threading
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psutil

from heron.clock import monotonic_s, wall_s
from heron.driver_kit.child_processes import spawn
from heron_testing_servers import bound_exec

__all__ = ["Api", "Node", "PodProcess"]

Json = dict[str, Any]

_HOST = "127.0.0.1"
_TICK_S = 0.05
_HEARTBEAT_S = 2.0
_RETRY_S = 0.3
_ANSWER_S = 5.0
_FIRST_WAIT_S, _LONGEST_WAIT_S = 0.2, 5.0
_MISSING_IMAGE = "missing"
_SIZE = {"cpu": "64", "memory": "256Gi", "pods": "200", "ephemeral-storage": "1Ti"}


class Api:
    """The requests of a node."""

    def __init__(self, url: str, token: str, pki: Path) -> None:
        self._url = url
        self._token = token
        self._tls = ssl.create_default_context(cafile=str(pki / "apiserver.crt"))

    def request(self, method: str, path: str, body: Mapping[str, object] | None = None) -> Json:
        """Return the answer. Raises OSError when the server refuses or does not answer."""
        try:
            with self.open(method, path, body, _ANSWER_S) as answer:
                return dict(json.load(answer))
        except (ValueError, http.client.HTTPException) as error:
            msg = f"the answer to {method} {path} has no end: {error!r}"
            raise ConnectionError(msg) from error

    def open(self, method: str, path: str, body: Mapping[str, object] | None, limit_s: float) -> Any:  # noqa: ANN401 - urllib has no type
        """Return the open answer. Raises OSError as `request` does."""
        kind = "application/merge-patch+json" if method == "PATCH" else "application/json"
        headers = {"Authorization": f"Bearer {self._token}", "Content-Type": kind}
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self._url + path, data, headers, method=method)  # noqa: S310 - the tests' server
        return urllib.request.urlopen(request, timeout=limit_s, context=self._tls)  # noqa: S310


class PodProcess:
    """One Pod of the node, from its start to the removal of its object."""

    def __init__(self, api: Api, node: str, folder: Path, pod: Json) -> None:
        self.pod = pod
        self.log = folder / "output"
        self._api = api
        self._node = node
        self._folder = folder
        self._spec = pod["spec"]["containers"][0]
        self._process: subprocess.Popen[bytes] | None = None
        self._restarts = -1
        self._state: Json = {"waiting": {"reason": "ContainerCreating"}}
        self._last: Json = {}
        self._start_at_s = 0.0
        self._kill_at_s: float | None = None
        self._started_at = _now()
        self._reported = ""
        folder.mkdir(parents=True, exist_ok=True)

    @property
    def key(self) -> str:
        """Its namespace and name."""
        return f"{self.pod['metadata']['namespace']}/{self.pod['metadata']['name']}"

    def delete(self, grace_s: float) -> None:
        """Order the end; a later order may only shorten the time."""
        at_s = monotonic_s() + grace_s
        if self._kill_at_s is None and self._process is not None:
            self._process.terminate()
        self._kill_at_s = at_s if self._kill_at_s is None else min(at_s, self._kill_at_s)

    def tick(self) -> bool:
        """Do what is due; return False when the Pod is gone."""
        self._look()
        if self._kill_at_s is not None:
            if self._process is not None and monotonic_s() >= self._kill_at_s:
                self.kill()
            return self._process is not None or not self._remove()
        if self._process is None and monotonic_s() >= self._start_at_s:
            self._start()
        self._report()
        return True

    def kill(self) -> None:
        """End the process and all below it."""
        if self._process is None:
            return
        try:
            family = [psutil.Process(self._process.pid), *psutil.Process(self._process.pid).children(recursive=True)]
        except psutil.NoSuchProcess:
            family = []
        for each in family:
            try:
                each.kill()
            except psutil.NoSuchProcess:
                continue
        self._process.wait()

    def _start(self) -> None:
        if self._spec["image"].partition(":")[0] == _MISSING_IMAGE:
            reason = (
                "ImagePullBackOff" if self._state.get("waiting", {}).get("reason") == "ErrImagePull" else "ErrImagePull"
            )
            self._state = {"waiting": {"reason": reason, "message": f"no such image: {self._spec['image']}"}}
            self._start_at_s = monotonic_s() + 1.0
            return
        try:
            mounts = self._mount()
        except OSError as error:
            self._state = {"waiting": {"reason": "CreateContainerConfigError", "message": str(error)}}
            self._start_at_s = monotonic_s() + 1.0
            return
        env = self._environment()
        words = []
        for word in (*self._spec.get("command", ()), *self._spec.get("args", ())):
            for name, value in env.items():
                word = word.replace(f"$({name})", value)  # noqa: PLW2901
            for there, here in mounts.items():
                word = word.replace(there, str(here))  # noqa: PLW2901
            words.append(word)
        with self.log.open("ab") as output:
            self._process = spawn([sys.executable, "-P", bound_exec.__file__, *words], stdout=output, env=env)
        self._restarts += 1
        self._state = {"running": {"startedAt": _now()}}

    def _mount(self) -> dict[str, Path]:
        secrets = {each["name"]: each["secret"] for each in self.pod["spec"].get("volumes", ()) if "secret" in each}
        mounts = {}
        for each in self._spec.get("volumeMounts", ()):
            if each["name"] not in secrets:
                continue
            secret = secrets[each["name"]]
            namespace = self.pod["metadata"]["namespace"]
            found = self._api.request("GET", f"/api/v1/namespaces/{namespace}/secrets/{secret['secretName']}")
            place = self._folder / each["name"]
            shutil.rmtree(place, ignore_errors=True)
            place.mkdir(mode=0o700)
            for name, data in (found.get("data") or {}).items():
                (place / name).write_bytes(base64.b64decode(data))
                (place / name).chmod(secret.get("defaultMode", 0o644))
            mounts[each["mountPath"]] = place
        return mounts

    def _environment(self) -> dict[str, str]:
        metadata = self.pod["metadata"]
        fields = {
            "metadata.name": metadata["name"],
            "metadata.namespace": metadata["namespace"],
            "status.podIP": _HOST,
            "status.hostIP": _HOST,
            "spec.nodeName": self._node,
        }
        temporary = self._folder / "tmp"  # in place of an empty folder that is mounted at /tmp
        temporary.mkdir(exist_ok=True)
        found = {"TMPDIR": str(temporary)}
        for each in self._spec.get("env", ()):
            found[each["name"]] = each.get("value") or fields.get(
                each.get("valueFrom", {}).get("fieldRef", {}).get("fieldPath", ""), ""
            )
        return found

    def _look(self) -> None:
        if self._process is None or (code := self._process.poll()) is None:
            return
        self._process = None
        number = code if code >= 0 else 128 - code
        last = self.log.read_text(errors="replace").splitlines()[-1:] if number else []
        self._last = {
            "terminated": {
                "exitCode": number,
                "reason": "Error" if number else "Completed",
                "message": "".join(last)[-300:],
                "finishedAt": _now(),
            }
        }
        self._state = {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off restarting failed container"}}
        self._start_at_s = monotonic_s() + min(_FIRST_WAIT_S * 2**self._restarts, _LONGEST_WAIT_S)

    def _report(self) -> None:
        running = "running" in self._state
        identity = f"process://{self._process.pid}" if self._process is not None else ""
        container = {
            "name": self._spec["name"],
            "image": self._spec["image"],
            "imageID": "",
            "containerID": identity,
            "ready": running,
            "started": running,
            "restartCount": max(0, self._restarts),
            "state": self._state,
            "lastState": self._last,
        }
        kinds = ("PodScheduled", "Initialized", "ContainersReady", "Ready")
        ready = {each: str(running or each in kinds[:2]) for each in kinds}
        status = {
            "phase": "Running" if self._restarts >= 0 else "Pending",
            "hostIP": _HOST,
            "podIP": _HOST,
            "podIPs": [{"ip": _HOST}],
            "startTime": self._started_at,
            "containerStatuses": [container],
            "conditions": [{"type": kind, "status": value} for kind, value in ready.items()],
        }
        text = json.dumps(status)
        if text == self._reported:
            return
        try:
            metadata = self.pod["metadata"]
            path = f"/api/v1/namespaces/{metadata['namespace']}/pods/{metadata['name']}/status"
            self._api.request("PATCH", path, {"metadata": {"uid": metadata["uid"]}, "status": status})
        except OSError:
            return  # the server is away, or the Pod was deleted
        self._reported = text

    def _remove(self) -> bool:
        metadata = self.pod["metadata"]
        path = f"/api/v1/namespaces/{metadata['namespace']}/pods/{metadata['name']}"
        body = {"gracePeriodSeconds": 0, "preconditions": {"uid": metadata["uid"]}}
        try:
            self._api.request("DELETE", path, body)
        except urllib.error.HTTPError as error:
            return error.code in {404, 409}
        except OSError:
            return False
        shutil.rmtree(self._folder, ignore_errors=True)
        return True


class Node:
    """The node: what is bound to it, and its heartbeats."""

    def __init__(self, api: Api, name: str, folder: Path, port: int) -> None:
        self.pods: dict[str, PodProcess] = {}
        self._api = api
        self._name = name
        self._folder = folder
        self._port = port
        self._events: queue.SimpleQueue[Json] = queue.SimpleQueue()

    def run(self) -> None:
        """Work until SIGTERM."""
        stopped = threading.Event()
        signal.signal(signal.SIGTERM, lambda *_: stopped.set())
        threading.Thread(target=self._watch, daemon=True).start()
        threading.Thread(target=self._beat, daemon=True).start()
        while not stopped.wait(_TICK_S):
            while not self._events.empty():
                self._take(self._events.get())
            for uid, pod in list(self.pods.items()):
                if not pod.tick():
                    del self.pods[uid]
        for pod in self.pods.values():
            pod.kill()

    def _take(self, event: Json) -> None:
        pod = event["object"]
        uid, metadata = pod["metadata"]["uid"], pod["metadata"]
        if event["type"] == "DELETED":
            if uid in self.pods:
                self.pods[uid].delete(0.0)
        elif metadata.get("deletionTimestamp"):
            if uid not in self.pods:
                self.pods[uid] = self._pod(pod)
            self.pods[uid].delete(float(metadata.get("deletionGracePeriodSeconds") or 0))
        elif uid not in self.pods:
            self.pods[uid] = self._pod(pod)

    def _pod(self, pod: Json) -> PodProcess:
        return PodProcess(self._api, self._name, self._folder / str(pod["metadata"]["uid"]), pod)

    def _watch(self) -> None:
        while True:
            try:
                for event in self._changes():
                    self._events.put(event)
            except (OSError, ValueError, http.client.HTTPException):
                threading.Event().wait(_RETRY_S)  # the server is away; the processes go on

    def _changes(self) -> Iterator[Json]:
        query = urllib.parse.urlencode({"fieldSelector": f"spec.nodeName={self._name}"})
        found = self._api.request("GET", f"/api/v1/pods?{query}")
        present = {each["metadata"]["uid"] for each in found["items"]}
        for uid, pod in list(self.pods.items()):
            if uid not in present:
                yield {"type": "DELETED", "object": pod.pod}
        for each in found["items"]:
            yield {"type": "ADDED", "object": each}
        version = found["metadata"]["resourceVersion"]
        with self._api.open("GET", f"/api/v1/pods?{query}&watch=1&resourceVersion={version}", None, 300.0) as lines:
            for line in lines:
                event = json.loads(line)
                if event["type"] == "ERROR":
                    return
                yield event

    def _beat(self) -> None:
        while True:
            try:
                self._report()
            except urllib.error.HTTPError as error:
                if error.code == 404:
                    self._register()
            except OSError:
                pass  # the server is away
            threading.Event().wait(_HEARTBEAT_S)

    def _register(self) -> None:
        labels = {"kubernetes.io/hostname": self._name}
        self._api.request("POST", "/api/v1/nodes", {"metadata": {"name": self._name, "labels": labels}})
        self._report()

    def _report(self) -> None:
        condition = {"type": "Ready", "status": "True", "reason": "KubeletReady", "lastHeartbeatTime": _now()}
        status = {
            "allocatable": _SIZE,
            "capacity": _SIZE,
            "conditions": [condition],
            "addresses": [{"type": "InternalIP", "address": _HOST}, {"type": "Hostname", "address": self._name}],
            "daemonEndpoints": {"kubeletEndpoint": {"Port": self._port}},
        }
        self._api.request("PATCH", f"/api/v1/nodes/{self._name}/status", {"status": status})


def _serve_outputs(node: Node, pki: Path, port: int) -> None:
    """Serve ``/containerLogs/NAMESPACE/POD/CONTAINER``, as the API server asks for it."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            place = urllib.parse.urlsplit(self.path)
            key = "/".join(place.path.split("/")[2:4])
            found = [each.log for each in list(node.pods.values()) if each.key == key and each.log.exists()]
            self.send_response(200 if found else 404)
            self.end_headers()
            if found:
                count = int(urllib.parse.parse_qs(place.query).get("tailLines", ["1000000"])[0])
                lines = found[0].read_bytes().splitlines(keepends=True)
                self.wfile.write(b"".join(lines[len(lines) - min(count, len(lines)) :]))

        def log_message(self, *_: object) -> None:
            """Write nothing."""

    server = http.server.ThreadingHTTPServer((_HOST, port), Handler)
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(pki / "apiserver.crt", pki / "apiserver.key")
    server.socket = tls.wrap_socket(server.socket, server_side=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()


def _now() -> str:
    return datetime.fromtimestamp(wall_s(), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


if __name__ == "__main__":
    _name, _url, _token, _pki, _where, _port = sys.argv[1:]
    _node = Node(Api(_url, _token, Path(_pki)), _name, Path(_where), int(_port))
    _serve_outputs(_node, Path(_pki), int(_port))
    _node.run()
