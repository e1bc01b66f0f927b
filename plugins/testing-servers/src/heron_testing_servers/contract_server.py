"""The tests' side of a server that is written from a published contract: a process, its faults and its containers.

Such a server is a module of this package that runs ``python -m MODULE FOLDER PORT OWNER OPTIONS``: it keeps its state
in the folder, listens at the port, and its containers end with the process OWNER. OPTIONS is a JSON object.
"""

from __future__ import annotations

import json
import os
import sys
import urllib.error
import urllib.request
from dataclasses import asdict
from pathlib import Path
from typing import Any

from heron_testing.ports import free_port
from heron_testing_servers.container_processes import end_containers
from heron_testing_servers.http_service import CONTROLS, Fault
from heron_testing_servers.server_process import ServerProcess, answers

__all__ = ["CONTAINERS", "ContractServer"]

CONTAINERS = "containers"
"""The folder of the containers in the folder of a server, and its control with the process ids of those that run."""

_ANSWER_S = 30.0


class ContractServer:
    """A server that can be killed and started again; its containers survive it, and its state is in files."""

    def __init__(self, module: str, folder: Path, **options: object) -> None:
        """`module` is the dotted name of the server's module; OPTIONS are the others."""
        self.folder = folder
        port = free_port()
        self.address = ("127.0.0.1", port)
        """The address for clients: host and port."""
        self.url = f"http://127.0.0.1:{port}"
        """The same address as a URL."""
        command = [sys.executable, "-m", module, str(folder), str(port), str(os.getpid()), json.dumps(options)]
        self.process = ServerProcess(command, folder / "server.log", lambda: answers(f"{self.url}{CONTROLS}faults"))
        """The process of the server; a test may kill it and start it again."""

    @property
    def control_url(self) -> str:
        """The address that gets the requests of the test."""
        return self.url

    def start(self) -> None:
        """Start the server if it does not run, and return when it answers.

        Raises:
            ServerError: when it does not start.
        """
        self.process.start()

    def kill(self) -> None:
        """End the server and all its containers; idempotent."""
        self.process.kill()
        end_containers(self.folder / CONTAINERS)

    def fault(self, fault: Fault) -> None:
        """Order a fault for the next requests."""
        self.control("POST", "faults", asdict(fault))

    def faults(self) -> list[Fault]:
        """Return the faults that have not happened."""
        return [Fault(**each) for each in self.control("GET", "faults")]

    def clear_faults(self) -> None:
        """Remove the faults that have not happened."""
        self.control("DELETE", "faults")

    def containers(self) -> dict[str, int]:
        """Return the process ids of the containers' commands that run, by the server's names for the containers."""
        return dict(self.control("GET", CONTAINERS))

    def control(self, method: str, path: str, body: object = None) -> Any:  # noqa: ANN401 - each server has its own
        """Send a request of the test to ``/heron-testing/PATH`` and return the document of the answer.

        Raises:
            OSError: when the server refuses it, or does not run.
        """
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(f"{self.control_url}{CONTROLS}{path}", data, method=method)  # noqa: S310 - own
        try:
            with urllib.request.urlopen(request, timeout=_ANSWER_S) as answer:  # noqa: S310
                return json.load(answer)
        except urllib.error.HTTPError as error:
            error.close()
            raise
