"""Nomad on the loopback address, with access control: one agent, or a server and two clients."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import tempfile
import urllib.error
import urllib.request
from contextlib import suppress
from pathlib import Path

from heron_testing.ports import free_port
from heron_testing.waiting import wait_until
from heron_testing_servers.install import go_module, installed
from heron_testing_servers.server_process import ServerError, ServerProcess

__all__ = ["FIXTURES", "NomadAgent", "NomadAgents"]

FIXTURES = ("nomad", "nomad_agents")

_VERSION = "v1.6.0"
_MODULE = "github.com/hashicorp/nomad"
_REPLACED = {f"{_MODULE}/api": "v0.0.0-20230718173136-3a687930bd3e"}
_HOST = "127.0.0.1"
_READY_S = 60.0
_PROBE_S = 5.0
_OWNER = "HERON_TESTING_NOMAD"  # all processes of agents and of their tasks have it in their environment

_AGENT = """
name = "{name}"
bind_addr = "127.0.0.1"
data_dir = "{folder}"
disable_update_check = true
log_level = "WARN"
ports {{ http = {http}  rpc = {rpc}  serf = {serf} }}
advertise {{ http = "127.0.0.1" rpc = "127.0.0.1" serf = "127.0.0.1" }}
acl {{ enabled = true }}
"""
_SERVER = """
server {
  enabled = true
  bootstrap_expect = 1
  heartbeat_grace = "2s"
  min_heartbeat_ttl = "3s"
  failover_heartbeat_ttl = "30s"
}
"""
_CLIENT = """
client {{
  enabled = true
  network_interface = "lo"
  cpu_total_compute = 16000
  memory_total_mb = 16000
  servers = ["127.0.0.1:{server}"]
  options = {{
    "driver.allowlist" = "raw_exec"
    "fingerprint.denylist" = "env_aws,env_gce,env_azure,env_digitalocean"
  }}
}}
plugin "raw_exec" {{ config {{ enabled = true  no_cgroups = true }} }}
"""


class NomadAgent:
    """One agent, which is server and client. Its tasks are processes of this machine (task driver ``raw_exec``).

    Tasks survive a killed agent, and the agent finds them again when it is started.
    """

    clients = 0
    """The number of further agents, which are clients only; without them the first agent is a client too."""

    def __init__(self, folder: Path) -> None:
        """Build Nomad into the cache if it is absent.

        Raises:
            ServerNotInstalledError: when there is no Go, or the build fails.
        """
        self._program = installed(f"nomad-{_VERSION}", go_module(_MODULE, _VERSION, _REPLACED)) / "bin" / "nomad"
        # The path of a socket has at most 107 bytes, and those of tasks are deep in this folder.
        self._data = Path(tempfile.mkdtemp(prefix="nomad-"))
        self._rpc = free_port()
        http = free_port()
        self.url = f"http://{_HOST}:{http}"
        """The address for clients: the ``NOMAD_ADDR`` of tools."""
        self.token = "5b3f0d0e-8a43-4c0a-9c53-0d1f6a3f7d11"  # of a server that ends with the tests
        """The token of the administrator."""
        self.server = self._agent(folder, "server", http, _SERVER + ("" if self.clients else self._client()))
        """The process of the server."""
        names = [f"client-{number}" for number in range(self.clients)]
        self.nodes = {name: self._agent(folder, name, free_port(), self._client()) for name in names}
        """The processes of further clients, by the names of their nodes."""

    def start(self) -> None:
        """Start the processes that do not run, and return when all clients are ready.

        Raises:
            ServerError: when one of them does not start within a minute.
        """
        self.server.start()
        with suppress(ServerError):  # a restarted server has its administrator already
            self.request("PUT", "acl/bootstrap", {"BootstrapSecret": self.token})
        for each in self.nodes.values():
            each.start()
        wait_until(lambda: len(self.ready_nodes()) == max(1, self.clients), _READY_S, "the clients are ready")
        if not self.clients:
            wait_until(self._is_client, _READY_S, "the restarted agent hears of changes of its tasks")

    def kill(self) -> None:
        """End all agents and all tasks with SIGKILL, and remove their data; idempotent."""
        for each in (*self.nodes.values(), self.server):
            each.kill()
        for pid in self._processes():
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        mounts = [line.split()[1] for line in Path("/proc/self/mounts").read_text(encoding="ascii").splitlines()]
        for place in mounts:
            if place.startswith(f"{self._data}/"):  # the secrets of a task
                subprocess.run(["umount", "-l", place], check=False)
        shutil.rmtree(self._data, ignore_errors=True)

    def ready_nodes(self) -> dict[str, str]:
        """Return the ids of the clients that are ready, by their names."""
        try:
            found = json.loads(self.request("GET", "nodes"))
        except ServerError:
            return {}
        return {str(each["Name"]): str(each["ID"]) for each in found if each["Status"] == "ready"}

    def add_token(self, policy: str, name: str = "heron") -> str:
        """Make a token with an ACL policy in HCL of that name, and return its secret."""
        self.request("PUT", f"acl/policy/{name}", {"Name": name, "Rules": policy})
        made = self.request("PUT", "acl/token", {"Name": name, "Type": "client", "Policies": [name]})
        return str(json.loads(made)["SecretID"])

    def request(self, method: str, path: str, body: object = None) -> bytes:
        """Return the answer to a request of the administrator; `path` begins after ``/v1``.

        Raises:
            ServerError: when the server refuses it, or does not answer.
        """
        data = None if body is None else json.dumps(body).encode()
        headers = {"X-Nomad-Token": self.token}
        asked = urllib.request.Request(f"{self.url}/v1/{path}", data, headers, method=method)  # noqa: S310
        try:
            with urllib.request.urlopen(asked, timeout=_PROBE_S) as answer:  # noqa: S310
                return bytes(answer.read())
        except urllib.error.HTTPError as error:
            with error:
                msg = f"{method} {path}: {error.read().decode()}"
            raise ServerError(msg) from error
        except OSError as error:
            msg = f"{self.url} does not answer: {error}"
            raise ServerError(msg) from error

    def _agent(self, folder: Path, name: str, http: int, role: str) -> ServerProcess:
        data = self._data / name
        data.mkdir()
        rpc = self._rpc if name == "server" else free_port()
        settings = folder / f"{name}.hcl"
        settings.write_text(_AGENT.format(name=name, folder=data, http=http, rpc=rpc, serf=free_port()) + role)
        command = ["env", f"{_OWNER}={self._data}", str(self._program), "agent", "-config", str(settings)]
        ready = self._has_leader if name == "server" else lambda: name in self.ready_nodes()
        return ServerProcess(command, folder / f"{name}.log", ready)

    def _client(self) -> str:
        return _CLIENT.format(server=self._rpc)

    def _has_leader(self) -> bool:
        try:
            return len(self.request("GET", "status/leader")) > len('""')
        except ServerError:
            return False

    def _is_client(self) -> bool:
        """Return whether the agent has registered its client since its start; the server knows it from before."""
        stats = json.loads(self.request("GET", "agent/self"))["stats"]["client"]
        return bool(stats["heartbeat_ttl"] != "0s")

    def _processes(self) -> list[int]:
        mark, found = f"{_OWNER}={self._data}".encode(), []
        for each in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):  # it has ended, or is of another user
                if mark in (each / "environ").read_bytes().split(b"\0"):
                    found.append(int(each.name))
        return found


class NomadAgents(NomadAgent):
    """Three agents: a server, and the clients ``client-0`` and ``client-1``."""

    clients = 2
