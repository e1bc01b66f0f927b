"""BookKeeper with DistributedLog on the loopback address: a ZooKeeper, three bookies, and a namespace of logs."""

from __future__ import annotations

import shutil
from pathlib import Path

from heron_testing.ports import free_port
from heron_testing_servers.install import ServerNotInstalledError, installed, maven_jars
from heron_testing_servers.log_streams import LogStreams
from heron_testing_servers.server_process import ServerProcess, answers, listens

__all__ = ["FIXTURES", "DistributedLogCluster"]

FIXTURES = ("distributedlog",)

_VERSION = "4.17.1"
_ARTIFACTS = (
    f"org.apache.bookkeeper:bookkeeper-server:{_VERSION}",
    f"org.apache.bookkeeper.http:vertx-http-server:{_VERSION}",
    f"org.apache.distributedlog:distributedlog-core:{_VERSION}",
    "io.dropwizard.metrics:metrics-core:4.1.12.1",  # ZooKeeper exits at its start without these two
    "org.xerial.snappy:snappy-java:1.1.10.5",
)
_JAVA = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Djava.net.preferIPv4Stack=true")
_ZOOKEEPER = "org.apache.zookeeper.server.quorum.QuorumPeerMain"
_BOOKIE = "org.apache.bookkeeper.server.Main"
_BOOKIES = 3

_ZOOKEEPER_CONF = """\
tickTime=200
dataDir={data}
clientPort={port}
clientPortAddress=127.0.0.1
maxClientCnxns=0
admin.enableServer=false
minSessionTimeout=400
maxSessionTimeout=60000
"""

# Sessions are short, so a killed bookie is known to be dead after 2 s.
_BOOKIE_CONF = """\
bookiePort={port}
allowLoopback=true
listeningInterface=lo
advertisedAddress=127.0.0.1
metadataServiceUri=zk+hierarchical://{zookeeper}/ledgers
zkTimeout=2000
journalDirectories={folder}/journal
ledgerDirectories={folder}/ledgers
httpServerEnabled=true
httpServerPort={web}
httpServerHost=127.0.0.1
httpServerClass=org.apache.bookkeeper.http.vertx.VertxHttpServer
journalSyncData=false
journalMaxGroupWaitMSec=0
journalPreAllocSizeMB=1
diskUsageThreshold=0.99
diskUsageWarnThreshold=0.98
"""


class DistributedLogCluster:
    """Keeps its data in `folder`, so records survive a kill.

    Attributes:
        zookeeper: keeps the metadata of logs; without it no log can be opened.
        bookies: keep the records.
        streams: a client, for the other side of a test.
    """

    def __init__(self, folder: Path) -> None:
        """Install the libraries from Maven into the cache; needs a ``java`` of 11 or newer on the PATH.

        Raises:
            ServerNotInstalledError: when either is not available.
        """
        java = shutil.which("java")
        if java is None:
            msg = "there is no `java` on the PATH; install a JDK of 11 or newer"
            raise ServerNotInstalledError(msg)
        self.jars = installed(f"distributedlog-{_VERSION}", maven_jars(*_ARTIFACTS)) / "lib"
        """The folder of the libraries, also of the client."""
        self.cache = folder / "cache"
        """For ``XDG_CACHE_HOME`` of a sandbox: classes of clients are compiled once for the session."""
        port = free_port()
        self.uri = f"distributedlog://127.0.0.1:{port}/heron"
        """The namespace."""
        begin = [java, *_JAVA, "-cp", f"{self.jars}/*"]
        (folder / "zookeeper").mkdir(parents=True)
        config = folder / "zoo.cfg"
        config.write_text(_ZOOKEEPER_CONF.format(data=folder / "zookeeper", port=port), encoding="utf-8")
        zookeeper = [*begin[:1], "-Xmx128m", *begin[1:], _ZOOKEEPER, str(config)]
        self.zookeeper = ServerProcess(zookeeper, folder / "zookeeper.log", lambda: listens(port))
        self.bookies = [_bookie(begin, folder / f"bookie{number}", port) for number in range(_BOOKIES)]
        self.streams = LogStreams([*begin[:1], "-Xmx192m", *begin[1:]], self.uri, folder / "streams.log")
        self._is_new = True

    def start(self) -> None:
        """Start what does not run, and return when all answer.

        Raises:
            ServerError: when a process does not start within a minute.
        """
        self.zookeeper.start()
        if self._is_new:
            self.streams.make_namespace()
            self._is_new = False
        for each in self.bookies:
            each.start()

    def kill(self) -> None:
        """End all with SIGKILL; idempotent."""
        self.streams.close()
        for each in (*self.bookies, self.zookeeper):
            each.kill()


def _bookie(begin: list[str], folder: Path, zookeeper_port: int) -> ServerProcess:
    folder.mkdir()
    web = free_port()
    config = folder / "bookie.conf"
    zookeeper = f"127.0.0.1:{zookeeper_port}"
    text = _BOOKIE_CONF.format(port=free_port(), web=web, folder=folder, zookeeper=zookeeper)
    config.write_text(text, encoding="utf-8")
    memory = ["-Xmx192m", "-XX:MaxDirectMemorySize=128m"]
    command = [*begin[:1], *memory, *begin[1:], _BOOKIE, "--conf", str(config)]
    return ServerProcess(command, folder / "log", lambda: answers(f"http://127.0.0.1:{web}/api/v1/bookie/is_ready"))
