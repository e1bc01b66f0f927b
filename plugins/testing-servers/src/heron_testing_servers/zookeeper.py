"""ZooKeeper on the loopback address: a single server, or an ensemble of three."""

from __future__ import annotations

import shutil
import socket
from collections.abc import Sequence
from pathlib import Path

from heron_testing.ports import free_port
from heron_testing.waiting import wait_until
from heron_testing_servers.install import ServerNotInstalledError, installed, maven_jars
from heron_testing_servers.server_process import ServerError, ServerProcess

__all__ = ["FIXTURES", "ZooKeeperEnsemble", "ZooKeeperServer"]

FIXTURES = ("zookeeper", "zookeeper_ensemble")

_VERSION = "3.9.3"
_ARTIFACTS = (
    f"org.apache.zookeeper:zookeeper:{_VERSION}",
    "io.dropwizard.metrics:metrics-core:4.1.12.1",  # it exits at its start without these two
    "org.xerial.snappy:snappy-java:1.1.10.5",
)
_JAVA = ("-Xmx128m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Djava.net.preferIPv4Stack=true")
_MAIN = "org.apache.zookeeper.server.quorum.QuorumPeerMain"
_PROBE_S = 2.0
_READY_S = 60.0

# Ticks are short, so an election or the end of a session takes seconds; sessions may be as short as 0.4 s.
_CONFIG = """\
tickTime=200
initLimit=50
syncLimit=25
dataDir={data}
clientPort={port}
clientPortAddress=127.0.0.1
maxClientCnxns=0
4lw.commands.whitelist=*
admin.enableServer=false
minSessionTimeout=400
maxSessionTimeout=600000
quorumListenOnAllIPs=false
enforceQuota=true
{peers}
"""


class ZooKeeperServer(ServerProcess):
    """One server; keeps its data in `folder`, so written data survives a kill."""

    def __init__(self, folder: Path, number: int = 1, peers: Sequence[str] = (), port: int = 0) -> None:
        """Install the libraries from Maven into the cache; needs the ``java`` on the PATH.

        Args:
            folder: of this server alone.
            number: its number in an ensemble (`ZooKeeperEnsemble`).
            peers: the ensemble's ``server.N`` lines; empty for a single server.
            port: for clients; 0 for any free port.

        Raises:
            ServerNotInstalledError: when either is not available.
        """
        java = shutil.which("java")
        if java is None:
            msg = "there is no `java` on the PATH; install a JRE of 11 or newer"
            raise ServerNotInstalledError(msg)
        libraries = installed(f"zookeeper-{_VERSION}", maven_jars(*_ARTIFACTS)) / "lib"
        self.address = ("127.0.0.1", port or free_port())
        """The address for clients: host and port."""
        self.data = folder / "data"
        """Its data on disk; remove it while the server is down to make the server forget everything."""
        self._number = number
        self._alone = not peers
        folder.mkdir(parents=True, exist_ok=True)
        config = folder / "zoo.cfg"
        config.write_text(_CONFIG.format(data=self.data, port=self.address[1], peers="\n".join(peers)))
        command = [java, *_JAVA, "-cp", f"{libraries}/*", _MAIN, str(config)]
        super().__init__(command, folder / "zookeeper.log", self._up)

    def start(self) -> None:
        """Start it; a member of an ensemble may still be without a leader then."""
        self.data.mkdir(exist_ok=True)
        (self.data / "myid").write_text(str(self._number))
        super().start()

    def mode(self) -> str:
        """``standalone``, ``leader`` or ``follower``; empty while it does not serve."""
        lines = self._ask(b"srvr").splitlines()
        return next((line.removeprefix("Mode: ") for line in lines if line.startswith("Mode: ")), "")

    def _up(self) -> bool:
        return bool(self.mode()) if self._alone else self._ask(b"ruok") == "imok"

    def _ask(self, word: bytes) -> str:
        try:
            with socket.create_connection(self.address, _PROBE_S) as connection:
                connection.sendall(word)
                return b"".join(iter(lambda: connection.recv(65536), b"")).decode()
        except OSError:
            return ""


class ZooKeeperEnsemble:
    """Three servers, of which two make a quorum."""

    def __init__(self, folder: Path) -> None:
        """See `ZooKeeperServer`."""
        peers = [f"server.{number}=127.0.0.1:{free_port()}:{free_port()}" for number in (1, 2, 3)]
        self.servers = tuple(ZooKeeperServer(folder / f"n{number}", number, peers) for number in (1, 2, 3))
        """All servers, running or not."""

    @property
    def addresses(self) -> tuple[str, ...]:
        """``host:port`` of each."""
        return tuple(f"{host}:{port}" for host, port in (server.address for server in self.servers))

    def start(self) -> None:
        """Start the servers that do not run, and return when all serve.

        Raises:
            ServerError: when one does not start within a minute.
        """
        for server in self.servers:
            server.start()
        try:
            wait_until(lambda: all(server.mode() for server in self.servers), _READY_S, "the ensemble serves")
        except AssertionError as error:
            self.kill()
            msg = "the ZooKeeper ensemble has no leader after a minute"
            raise ServerError(msg) from error

    def leader(self) -> ZooKeeperServer:
        """Return the present leader.

        Raises:
            ServerError: when there is none.
        """
        for server in self.servers:
            if server.mode() == "leader":
                return server
        msg = "the ZooKeeper ensemble has no leader"
        raise ServerError(msg)

    def kill(self) -> None:
        """End all with SIGKILL; idempotent."""
        for server in self.servers:
            server.kill()
