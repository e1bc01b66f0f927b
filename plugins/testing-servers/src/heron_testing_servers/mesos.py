"""Mesos on the loopback address, written from its published contract: masters, and agents that run processes."""

from __future__ import annotations

import base64
import json
import os
import sys
import urllib.request
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from heron_testing.ports import free_port
from heron_testing.waiting import wait_until
from heron_testing_servers.contract_server import ContractServer
from heron_testing_servers.server_process import ServerProcess, answers

__all__ = ["FIXTURES", "MesosCluster", "attribute", "resources"]

FIXTURES = ("mesos",)

Json = dict[str, Any]

_MODULE = f"{__package__}.mesos_parts.server"
_READY_S = 60.0
_PORTS = 100  # of an agent
_TIMES = {"heartbeat_s": 1.0, "retry_s": 2.0, "unreachable_s": 1.0, "offer_timeout_s": 0.0}


def resources(
    cpus: float, mem: float, ports: Sequence[tuple[int, int]] = (), role: str = "*", disk: float = 0
) -> list[Json]:
    """Return `Resource` messages of an agent, reserved for a role unless it is ``*``."""
    amounts = {"cpus": cpus, "mem": mem, "disk": disk}
    found: list[Json] = [
        {"name": name, "type": "SCALAR", "scalar": {"value": value}, "role": role}
        for name, value in amounts.items()
        if value
    ]
    if ports:
        ranges = [{"begin": begin, "end": end} for begin, end in ports]
        found.append({"name": "ports", "type": "RANGES", "ranges": {"range": ranges}, "role": role})
    return found


def attribute(name: str, value: str) -> Json:
    """Return an `Attribute`."""
    return {"name": name, "type": "TEXT", "text": {"value": value}}


class MesosCluster(ContractServer):
    """A master with the agents ``agent-0`` and so on. Tasks survive a killed master; `kill` ends them too.

    Each agent has an address of its own on the loopback network, which is its host name: 127.0.0.2 and so on.
    """

    def __init__(
        self,
        folder: Path,
        agents: Sequence[tuple[Sequence[Json], Sequence[Json]]] | None = None,
        users: Mapping[str, Json] | None = None,
        times: Mapping[str, float] | None = None,
    ) -> None:
        """Do not start it yet.

        Args:
            folder: for its state, its log and the sandboxes.
            agents: the resources and the attributes of each; by default two of 8 cpus and 16 GB, in the racks a and b.
            users: by principal: ``secret``, and what limits it: ``roles``, ``users`` (of tasks), ``read_files``,
                ``teardown``, ``mark_gone``. Without users there is no authentication.
            times: in seconds, other than heartbeat_s 1, retry_s 2 (of an update that is not acknowledged),
                unreachable_s 1 (until an agent is lost), offer_timeout_s 0 (never).
        """
        folder.mkdir(parents=True, exist_ok=True)
        # Below the ports that the system gives out, and not those of other agents and other runs of tests.
        first = 24000 + os.getpid() % 40 * 2 * _PORTS
        ranges = [(first + number * _PORTS, first + (number + 1) * _PORTS - 1) for number in range(2)]
        default = [
            (resources(8, 16384, [ports]), [attribute("rack", rack)]) for ports, rack in zip(ranges, "ab", strict=True)
        ]
        made = [
            {
                "name": f"agent-{number}",
                "hostname": f"127.0.0.{number + 2}",
                "port": free_port(),
                "resources": list(amounts),
                "attributes": list(named),
            }
            for number, (amounts, named) in enumerate(default if agents is None else agents)
        ]
        self.users = dict(users or {})
        """The principals, as given."""
        self._options: Json = {"agents": made, "users": self.users, "times": {**_TIMES, **(times or {})}}
        super().__init__(_MODULE, folder, **self._options)

    @property
    def control_url(self) -> str:
        """The address of the leading master."""
        return f"http://127.0.0.1:{(self.folder / 'leader').read_text(encoding='ascii')}"

    def start(self) -> None:
        """Start the master if it does not run, and return when it leads and its agents are registered.

        Raises:
            ServerError: when it does not start.
        """
        super().start()
        wait_until(self._has_agents, _READY_S, "a master leads and has its agents")

    def standby(self) -> tuple[ServerProcess, str]:
        """Return another master, not started, and its address: it redirects to the leader, and follows it."""
        port = free_port()
        place = f"{__package__}.mesos_parts.server"
        command = [
            sys.executable,
            "-m",
            place,
            str(self.folder),
            str(port),
            str(os.getpid()),
            json.dumps(self._options),
        ]
        url = f"http://127.0.0.1:{port}"
        return ServerProcess(command, self.folder / f"standby-{port}.log", lambda: answers(f"{url}/health")), url

    def agents(self) -> dict[str, Json]:
        """Return for each agent by its name: id, mode, registered, url."""
        return dict(self.control("GET", "agents"))

    def change_agent(self, name: str, mode: str) -> None:
        """Lose the machine of an agent with its tasks (``down``), its network (``partitioned``), or none (``up``)."""
        self.control("POST", "agents", {"name": name, "mode": mode})

    def fail_task(self, task_id: str, reason: str, message: str = "") -> None:
        """End a task as an agent does, for example with REASON_CONTAINER_LIMITATION_MEMORY."""
        self.control("POST", "fail", {"task_id": task_id, "reason": reason, "message": message})

    def state(self) -> Json:
        """Return the ``/state`` of the master, as the first user."""
        request = urllib.request.Request(f"{self.url}/state")  # noqa: S310 - our own address
        for name, user in list(self.users.items())[:1]:
            token = base64.b64encode(f"{name}:{user['secret']}".encode()).decode()
            request.add_header("Authorization", f"Basic {token}")
        with urllib.request.urlopen(request, timeout=_READY_S) as answer:  # noqa: S310
            return dict(json.load(answer))

    def _has_agents(self) -> bool:
        try:
            return all(each["registered"] or each["mode"] != "up" for each in self.agents().values())
        except OSError:  # no master leads
            return False
