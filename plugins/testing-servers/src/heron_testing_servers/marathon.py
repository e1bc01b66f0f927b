"""Marathon with agents of Mesos, written from the published contract; the tasks are processes of this machine."""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping, Sequence
from pathlib import Path

from heron_testing_servers.contract_server import ContractServer

__all__ = ["FIXTURES", "MarathonServer"]

FIXTURES = ("marathon",)

_PORTS_OF_AGENT = 400
_LEAST_PORT = 12_000
_RUNS, _OF_RUN = 10, 5  # ranges of so many runs, each of four agents and of Mesos; they end at 32,000


class MarathonServer(ContractServer):
    """Marathon, a master and agents of Mesos, at addresses ``127.0.0.N`` of this machine."""

    def __init__(
        self,
        folder: Path,
        agents: Sequence[Mapping[str, object]] = ({"cpus": 16.0, "mem": 16_000.0}, {"cpus": 16.0, "mem": 16_000.0}),
    ) -> None:
        """Choose the agents: each with ``cpus``, ``mem`` in MB, and perhaps ``disk``, ``role`` and ``attributes``."""
        self.token = "administrator-token"  # of a server that ends with the tests
        """The token of the administrator: ``Authorization: token=…``."""
        mesos = _two_ports()
        self.mesos_url = f"http://127.0.0.1:{mesos}"
        """The address of the master of Mesos."""
        self.hosts = [f"127.0.0.{number}" for number in range(1, len(agents) + 1)]
        """The hosts of the agents, in their order."""
        full = [
            {
                "host": host,
                "id": f"agent-S{index}",
                "first_port": first,
                "last_port": first + _PORTS_OF_AGENT - 1,
                **each,
            }
            for index, (host, each) in enumerate(zip(self.hosts, agents, strict=True))
            for first in [_first_port(index)]
        ]
        super().__init__(
            "heron_testing_servers.marathon_parts.api", folder, agents=full, token=self.token, mesos_port=mesos
        )

    def add_user(self, secret: str, *rights: tuple[str, str]) -> None:
        """Add a user with a token, or with ``NAME:PASSWORD``.

        A right is an action (``view``, ``create``, ``update``, ``delete``) and the path of an app or a group, below
        which it holds.
        """
        self.control("POST", "users", {"secret": secret, "rights": rights})

    def lose_agent(self, host: str, *, running: bool = True) -> None:
        """Cut an agent from its master. With `running` its tasks run on, as behind a cut link; else they end."""
        self.control("POST", "agents", {"host": host, "reachable": False, "running": running})

    def return_agent(self, host: str) -> None:
        """Let an agent come back; tasks that were replaced meanwhile end."""
        self.control("POST", "agents", {"host": host, "reachable": True, "running": True})

    def out_of_memory(self, task: str) -> None:
        """End a task as an agent does whose task exceeds its memory."""
        self.control("POST", "out-of-memory", {"name": task})


def _first_port(index: int) -> int:
    """The first port of an agent; other runs of tests on this machine have other ranges."""
    return _LEAST_PORT + (_OF_RUN * (os.getpid() % _RUNS) + index) * _PORTS_OF_AGENT


def _two_ports() -> int:
    """Return a free port whose successor is free too: of the master, and of each agent at its own address.

    They are below those that the system gives to clients, which could take them before the server starts.
    """
    first = _first_port(_OF_RUN - 1)
    return next(port for port in range(first, first + _PORTS_OF_AGENT, 2) if _is_free(port) and _is_free(port + 1))


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        try:
            probe.bind(("", port))
        except OSError:
            return False
    return True
