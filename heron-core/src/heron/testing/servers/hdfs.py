"""An HDFS of one name node and one data node, with WebHDFS and permissions, on the loopback address."""

from __future__ import annotations

import getpass
import http.client
import json
import os
import secrets
import shutil
import subprocess
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path
from xml.sax.saxutils import escape

from heron.testing.servers.install import ServerNotInstalledError, installed, maven_jars
from heron.testing.servers.server_process import ServerError, ServerProcess, answers, free_port

__all__ = ["HdfsServer"]

_VERSION = "3.5.0"
_ARTIFACTS = [f"org.apache.hadoop:{name}:{_VERSION}" for name in ("hadoop-hdfs", "hadoop-hdfs-client", "hadoop-common")]
_JAVA = ("-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Djava.net.preferIPv4Stack=true")
_NODES = "org.apache.hadoop.hdfs.server"
_STATE = "jmx?qry=Hadoop:service=NameNode,name=FSNamesystemState"
_FORMAT_S = 60.0
_PROBE_S = 2.0

_LOGGING = """\
log4j.rootLogger=WARN,stderr
log4j.appender.stderr=org.apache.log4j.ConsoleAppender
log4j.appender.stderr.target=System.err
log4j.appender.stderr.layout=org.apache.log4j.PatternLayout
log4j.appender.stderr.layout.ConversionPattern=%d{ISO8601} %p %c{1}: %m%n
"""


class HdfsServer:
    """Keeps its data in `folder`, so that what was written is there after a kill and a start.

    Who runs the tests is its superuser, as whoever starts a name node is; every other name is an ordinary user's.
    There are no passwords.
    """

    def __init__(self, folder: Path) -> None:
        """Takes Hadoop's libraries from Maven, into the cache, and a ``java`` of 11 or newer on the PATH.

        Raises:
            ServerNotInstalledError: when either cannot be had.
        """
        java = shutil.which("java")
        if java is None:
            msg = "there is no `java` on the PATH; install a JRE of 11 or newer"
            raise ServerNotInstalledError(msg)
        libraries = installed(f"hdfs-{_VERSION}", maven_jars(*_ARTIFACTS)) / "lib"
        self.address = ("127.0.0.1", free_port())
        """Where the name node answers WebHDFS: host and port."""
        self.url = f"http://127.0.0.1:{self.address[1]}"
        """The same as a URL."""
        self._folder = folder
        _configure(folder, self.address[1])
        options = [*_JAVA, f"-Djava.io.tmpdir={folder / 'tmp'}", "-cp", f"{folder / 'conf'}:{libraries}/*"]
        self._name_node = [java, *options, f"{_NODES}.namenode.NameNode"]
        data_node = [java, *options, f"{_NODES}.datanode.DataNode"]
        self.name_node = ServerProcess(self._name_node, folder / "namenode.log", self._answers)
        """Knows the names; without it nothing is answered."""
        self.data_node = ServerProcess(data_node, folder / "datanode.log", self._serves)
        """Has the contents; without it names are still answered."""

    def start(self) -> None:
        """Starts both and returns when files can be written and read.

        Raises:
            ServerError: when one of them does not come up within a minute.
        """
        if not (self._folder / "data" / "nn").exists():
            self._format()
        self.name_node.start()
        self.data_node.start()

    def kill(self) -> None:
        """Ends both with SIGKILL; idempotent."""
        self.data_node.kill()
        self.name_node.kill()

    def ask(self, verb: str, path: str, operation: str, **parameters: object) -> None:
        """Does something as the superuser: ``ask("PUT", "/mine", "SETOWNER", owner="me")``. See the WebHDFS reference.

        Raises:
            ServerError: when it is refused; has the answer.
        """
        query = urllib.parse.urlencode({"op": operation, "user.name": getpass.getuser(), **parameters})
        request = urllib.request.Request(f"{self.url}/webhdfs/v1{path}?{query}", method=verb)  # noqa: S310  # our own
        try:
            with urllib.request.urlopen(request, timeout=_FORMAT_S):  # noqa: S310  # our own
                pass
        except urllib.error.HTTPError as error:
            msg = f"{operation} {path}: {error.read().decode(errors='replace')}"
            raise ServerError(msg) from error

    def make_folder(self, path: str, owner: str) -> None:
        """Makes a folder of an ordinary user, as an administrator does."""
        self.ask("PUT", path, "MKDIRS")
        self.ask("PUT", path, "SETOWNER", owner=owner)

    def _format(self) -> None:
        command = [*self._name_node, "-format", "-nonInteractive", "-force"]
        ran = subprocess.run(command, capture_output=True, text=True, timeout=_FORMAT_S, check=False)
        if ran.returncode != 0:
            msg = f"the name node cannot be formatted: {ran.stderr.strip()[-500:]}"
            raise ServerError(msg)

    def _answers(self) -> bool:
        return answers(f"{self.url}/{_STATE}")

    def _serves(self) -> bool:
        """Whether a file can be written: the name node takes a data node that was killed for alive for a while."""
        return self._is_operational() and self._writes()

    def _writes(self) -> bool:
        query = urllib.parse.urlencode({"op": "CREATE", "noredirect": "true", "user.name": getpass.getuser()})
        try:
            with _put(f"{self.url}/webhdfs/v1/{secrets.token_hex(8)}?{query}") as answer:
                place = json.load(answer)["Location"]
            with _put(place):
                return True
        except (urllib.error.URLError, OSError, ValueError):
            return False

    def _is_operational(self) -> bool:
        try:
            with urllib.request.urlopen(f"{self.url}/{_STATE}", timeout=_PROBE_S) as answer:  # noqa: S310  # our own
                (state,) = json.load(answer)["beans"]
        except (urllib.error.URLError, OSError, ValueError):
            return False
        return bool(state["NumLiveDataNodes"] == 1 and state["FSState"] == "Operational")


def _put(url: str) -> http.client.HTTPResponse:
    request = urllib.request.Request(url, data=b"", method="PUT")  # noqa: S310  # our own
    answer: http.client.HTTPResponse = urllib.request.urlopen(request, timeout=_PROBE_S)  # noqa: S310  # our own
    return answer


def _configure(folder: Path, web_port: int) -> None:
    conf = folder / "conf"
    for each in (conf / "webapps" / "hdfs", conf / "webapps" / "datanode", folder / "tmp"):
        os.makedirs(each, exist_ok=True)
    rpc = f"127.0.0.1:{free_port()}"
    core = {"fs.defaultFS": f"hdfs://{rpc}", "hadoop.tmp.dir": str(folder / "data")}
    # A client that wants an answer soon; by default it tries for minutes.
    core |= {"ipc.client.connect.retry.interval": "200", "ipc.client.connect.max.retries": "100"}
    site = {
        "dfs.replication": "1",
        "dfs.namenode.rpc-address": rpc,
        "dfs.namenode.rpc-bind-host": "127.0.0.1",
        "dfs.namenode.http-address": f"127.0.0.1:{web_port}",
        "dfs.namenode.http-bind-host": "127.0.0.1",
        "dfs.namenode.name.dir": f"file://{folder}/data/nn",
        "dfs.namenode.safemode.extension": "0",
        "dfs.namenode.datanode.registration.ip-hostname-check": "false",
        "dfs.datanode.data.dir": f"file://{folder}/data/dn",
        "dfs.datanode.hostname": "127.0.0.1",
        "dfs.datanode.address": f"127.0.0.1:{free_port()}",
        "dfs.datanode.ipc.address": f"127.0.0.1:{free_port()}",
        "dfs.datanode.http.address": f"127.0.0.1:{free_port()}",
        "dfs.datanode.du.reserved": "0",
        # Whoever closes a file asks again after this long, 400 by default, where the data node was slower to report.
        "dfs.client.block.write.locateFollowingBlock.initial.delay.ms": "10",
        "dfs.client.block.write.locateFollowingBlock.retries": "10",
    }
    for name, settings in (("core-site.xml", core), ("hdfs-site.xml", site)):
        (conf / name).write_text(_xml(settings), encoding="utf-8")
    (conf / "log4j.properties").write_text(_LOGGING, encoding="ascii")


def _xml(settings: dict[str, str]) -> str:
    lines = [
        f"<property><name>{name}</name><value>{escape(value)}</value></property>" for name, value in settings.items()
    ]
    return "\n".join(["<configuration>", *lines, "</configuration>\n"])
