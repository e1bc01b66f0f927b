"""Flume with a Scribe source, which writes received messages to files."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

from heron_testing.ports import free_port
from heron_testing_servers.install import ServerNotInstalledError, installed, maven_jars
from heron_testing_servers.server_process import ServerProcess, listens

__all__ = ["FIXTURES", "ScribeServer"]

FIXTURES = ("scribe",)

_ARTIFACTS = (
    "org.apache.flume:flume-ng-node:1.11.0",
    "org.apache.flume.flume-ng-sources:flume-scribe-source:1.11.0",
    "org.slf4j:slf4j-simple:1.7.32",
)
_BATCH = 200

# A sink that waits for one message at a time writes it at once; after an empty read it would sleep.
_CONF = """\
a.sources = s
a.channels = c
a.sinks = k
a.sources.s.type = org.apache.flume.source.scribe.ScribeSource
a.sources.s.port = {port}
a.sources.s.workerThreads = 2
a.sources.s.thriftServer = THSHA_SERVER
a.sources.s.channels = c
a.channels.c.type = memory
a.channels.c.capacity = 100000
a.channels.c.transactionCapacity = {batch}
a.channels.c.keep-alive = 600
a.sinks.k.type = file_roll
a.sinks.k.sink.directory = {out}
a.sinks.k.sink.rollInterval = 0
a.sinks.k.sink.batchSize = 1
a.sinks.k.sink.serializer = header_and_text
a.sinks.k.channel = c
"""
_LINE = re.compile(r"^\{category=([^}]*)\} (.*)$")


class ScribeServer(ServerProcess):
    """Accepts at most `batch_messages` at once, and answers TRY_LATER to more; a kill loses unwritten messages."""

    batch_messages = _BATCH

    def __init__(self, folder: Path) -> None:
        """Install Flume from Maven's repository into the cache if it is absent.

        Raises:
            ServerNotInstalledError: when that fails, or there is no Java.
        """
        java = shutil.which("java")
        if java is None:
            msg = "there is no java on the PATH; install a JDK, 11 or newer"
            raise ServerNotInstalledError(msg)
        place = installed("flume-scribe-1.11.0", maven_jars(*_ARTIFACTS))
        self.address = ("127.0.0.1", free_port())
        """The address for clients: host and port."""
        self._out = folder / "out"
        self._out.mkdir()
        conf = folder / "scribe.conf"
        conf.write_text(_CONF.format(port=self.address[1], batch=_BATCH, out=self._out), encoding="utf-8")
        options = ["-Xmx128m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-cp", f"{place / 'lib'}/*"]
        agent = ["org.apache.flume.node.Application", "--no-reload-conf", "-n", "a", "-f", str(conf)]
        super().__init__([java, *options, *agent], folder / "flume.log", lambda: listens(self.address[1]))

    def messages(self, category: str) -> list[str]:
        """Return the messages of a category in the files, in order; each line is one message."""
        found = []
        for path in sorted(self._out.iterdir(), key=lambda each: (each.stat().st_mtime, each.name)):
            *lines, _ = path.read_text(encoding="utf-8", errors="replace").split("\n")  # the last may be partial
            matches = (match for line in lines if (match := _LINE.match(line)))
            found += [match[2] for match in matches if match[1] == category]
        return found
