"""Real clients of Scribe, unmodified: ``facebook-scribe`` from PyPI, and the Java client in Flume's jar.

Each runs in a program that behaves as users of Scribe do: it keeps a batch until a server answers OK, and sends the
same batch again after TRY_LATER or an error.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from heron_testing_servers.install import ServerNotInstalledError, installed, maven_jars, python_packages

__all__ = ["FIXTURES", "ScribeClients"]

FIXTURES = ("scribe_clients",)

_PYTHON = ("facebook-scribe==2.0.post1", "thrift==0.25.0", "setuptools<81")
_ARTIFACTS = (
    "org.apache.flume:flume-ng-node:1.11.0",
    "org.apache.flume.flume-ng-sources:flume-scribe-source:1.11.0",
    "org.slf4j:slf4j-simple:1.7.32",
)
_ENDS_S = 300.0

_PYTHON_PROGRAM = """\
import json, sys, time
from scribe import scribe
from thrift.protocol import TBinaryProtocol
from thrift.transport import TSocket, TTransport

addresses, category, size = sys.argv[1].split(","), sys.argv[2], int(sys.argv[3])
counts = {"ok": 0, "try-later": 0, "errors": 0}
turn, transport = 0, None

def connected():
    global transport
    host, _, port = addresses[turn % len(addresses)].rpartition(":")
    wire = TSocket.TSocket(host=host, port=int(port))
    wire.setTimeout(10000)
    transport = TTransport.TFramedTransport(wire)
    protocol = TBinaryProtocol.TBinaryProtocol(trans=transport, strictRead=False, strictWrite=False)
    transport.open()
    return scribe.Client(iprot=protocol, oprot=protocol)

client = None
messages = sys.stdin.read().splitlines()
for begin in range(0, len(messages), size):
    batch = [scribe.LogEntry(category, each + "\\n") for each in messages[begin:begin + size]]
    while True:
        try:
            client = client or connected()
            if client.Log(batch) == 0:
                counts["ok"] += 1
                break
            counts["try-later"] += 1
        except Exception:
            counts["errors"] += 1
            turn += 1
            transport.close()
            client = None
        time.sleep(0.05)
if "status" in sys.argv:
    client = client or connected()
    counts |= {"name": client.getName(), "status": client.getStatus(), "details": client.getStatusDetails()}
    counts["messages"] = client.getCounter("messages")  # its `getCounters` needs Python 2
transport.close()
print(json.dumps(counts))
"""

_JAVA_PROGRAM = """\
import java.io.*;
import java.nio.charset.StandardCharsets;
import java.util.*;
import org.apache.flume.source.scribe.*;
import org.apache.thrift.protocol.TBinaryProtocol;
import org.apache.thrift.transport.*;
import org.apache.thrift.transport.layered.TFramedTransport;

public class ScribeLoad {
    public static void main(String[] args) throws Exception {
        String[] addresses = args[0].split(",");
        int size = Integer.parseInt(args[2]);
        boolean strict = Arrays.asList(args).contains("strict");
        List<String> messages = new ArrayList<>();
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line; (line = in.readLine()) != null; ) messages.add(line);
        int ok = 0, later = 0, errors = 0, turn = 0;
        TTransport transport = null;
        Scribe.Client client = null;
        for (int begin = 0; begin < messages.size(); begin += size) {
            List<LogEntry> batch = new ArrayList<>();
            for (String each : messages.subList(begin, Math.min(messages.size(), begin + size)))
                batch.add(new LogEntry(args[1], each + "\\n"));
            while (true) {
                try {
                    if (client == null) {
                        String[] parts = addresses[turn % addresses.length].split(":");
                        TSocket wire = new TSocket(parts[0], Integer.parseInt(parts[1]));
                        wire.setTimeout(10000);
                        transport = new TFramedTransport(wire);
                        transport.open();
                        client = new Scribe.Client(new TBinaryProtocol(transport, false, strict));
                    }
                    if (client.Log(batch) == ResultCode.OK) { ok++; break; }
                    later++;
                } catch (Exception error) {
                    errors++;
                    turn++;
                    if (transport != null) transport.close();
                    client = null;
                }
                Thread.sleep(50);
            }
        }
        if (transport != null) transport.close();
        System.out.printf("{\\"ok\\": %d, \\"try-later\\": %d, \\"errors\\": %d}%n", ok, later, errors);
    }
}
"""


class ScribeClients:
    """The programs. Nothing runs before `log`; `kill` ends what runs."""

    kinds = ("facebook", "java", "java strict")

    def __init__(self, folder: Path) -> None:
        """Install both clients.

        Raises:
            ServerNotInstalledError: when something is not available.
        """
        java = shutil.which("java")
        if java is None:
            msg = "there is no java on the PATH; install a JDK, 11 or newer"
            raise ServerNotInstalledError(msg)
        python = installed("facebook-scribe-2.0.post1", python_packages(*_PYTHON)) / "bin" / "python"
        jars = installed("flume-scribe-1.11.0", maven_jars(*_ARTIFACTS)) / "lib"
        python_file, java_file = folder / "scribe_load.py", folder / "ScribeLoad.java"
        python_file.write_text(_PYTHON_PROGRAM, encoding="utf-8")
        java_file.write_text(_JAVA_PROGRAM, encoding="utf-8")
        self._commands = {
            "facebook": [str(python), str(python_file)],
            "java": [java, "-Xmx128m", "-XX:+UseSerialGC", "-cp", f"{jars}/*", str(java_file)],
        }
        self._folder = folder
        self._running: list[LoggingClient] = []

    def start(self) -> None:
        """Nothing to start."""

    def kill(self) -> None:
        """End the clients of tests that have failed."""
        for each in self._running:
            each.close()

    def log(
        self, kind: str, addresses: Sequence[tuple[str, int]], category: str, messages: Sequence[str], batch: int
    ) -> LoggingClient:
        """Start a client of a kind; it logs the messages, each with a line end, in batches of this size."""
        name, *words = kind.split()
        places = ",".join(f"{host}:{port}" for host, port in addresses)
        command = [*self._commands[name], places, category, str(batch), *words]
        text = self._folder / f"messages-{len(self._running)}"
        text.write_text("".join(f"{each}\n" for each in messages), encoding="utf-8")
        client = LoggingClient(command, text)
        self._running.append(client)
        return client


class LoggingClient:
    """A client that runs."""

    def __init__(self, command: Sequence[str], text: Path) -> None:
        with text.open("rb") as messages:
            self._process = subprocess.Popen(command, stdin=messages, stdout=subprocess.PIPE, text=True)

    def finished(self) -> dict[str, object]:
        """Wait until every batch is accepted; returns the counts ``ok``, ``try-later`` and ``errors``.

        Raises:
            AssertionError: when the program fails.
        """
        try:
            text, _ = self._process.communicate(timeout=_ENDS_S)
        finally:
            self.close()
        assert self._process.returncode == 0, text  # for tests
        found: dict[str, object] = json.loads(text)
        return found

    def close(self) -> None:
        """End it, if it has not ended."""
        self._process.kill()
        self._process.communicate()
