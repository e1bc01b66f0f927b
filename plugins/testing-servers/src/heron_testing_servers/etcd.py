"""An etcd with one node and without fsync: fast, with the answers of any other etcd."""

from __future__ import annotations

import shutil
from pathlib import Path

from heron_testing.ports import free_port
from heron_testing_servers.install import debian_package, installed
from heron_testing_servers.server_process import ServerProcess, answers

__all__ = ["FIXTURES", "EtcdServer"]

FIXTURES = ("etcd",)


class EtcdServer(ServerProcess):
    """Keeps its data in `folder`, so written data survives a kill."""

    def __init__(self, folder: Path) -> None:
        """Use the etcd on the PATH, else install Debian's into the cache.

        Raises:
            ServerNotInstalledError: when there is neither.
        """
        self.address = ("127.0.0.1", free_port())
        """The address for clients: host and port."""
        self.url = f"http://127.0.0.1:{self.address[1]}"
        """The same address as a URL."""
        peer = f"http://127.0.0.1:{free_port()}"
        command = {
            "--name": "one",
            "--data-dir": str(folder / "data"),
            "--listen-client-urls": self.url,
            "--advertise-client-urls": self.url,
            "--listen-peer-urls": peer,
            "--initial-advertise-peer-urls": peer,
            "--initial-cluster": f"one={peer}",
        }
        options = [part for pair in command.items() for part in pair]
        super().__init__([_program(), *options, "--unsafe-no-fsync"], folder / "etcd.log", self._healthy)

    def _healthy(self) -> bool:
        return answers(f"{self.url}/health")


def _program() -> str:
    return shutil.which("etcd") or str(installed("etcd-debian", debian_package("etcd-server")) / "usr" / "bin" / "etcd")
