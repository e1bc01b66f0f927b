"""An HDFS of one name node and one data node, with WebHDFS and permissions, on the loopback address."""

from __future__ import annotations

import getpass
import http.client
import json
import os
import secrets
import subprocess
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path

from heron_testing.ports import free_port
from heron_testing_servers.hadoop import CLOSES_SOON, HADOOP_VERSION, hadoop_java, write_hadoop_settings
from heron_testing_servers.install import installed, maven_jars
from heron_testing_servers.server_process import ServerError, ServerProcess, answers

__all__ = ["FIXTURES", "HdfsServer"]

FIXTURES = ("hdfs",)

_NAMES = ("hadoop-hdfs", "hadoop-hdfs-client", "hadoop-common")
_ARTIFACTS = [f"org.apache.hadoop:{name}:{HADOOP_VERSION}" for name in _NAMES]
_NODES = "org.apache.hadoop.hdfs.server"
_STATE = "jmx?qry=Hadoop:service=NameNode,name=FSNamesystemState"
_FORMAT_S = 60.0
_PROBE_S = 2.0


class HdfsServer:
    """Keeps its data in `folder`, so written data survives a kill.

    The user who runs the tests is its superuser, because that user starts the name node. All other users are ordinary.
    There are no passwords.
    """

    def __init__(self, folder: Path) -> None:
        """Install Hadoop's libraries from Maven into the cache; needs a ``java`` of 11 or newer on the PATH.

        Raises:
            ServerNotInstalledError: when either is not available.
        """
        java = hadoop_java(folder, installed(f"hdfs-{HADOOP_VERSION}", maven_jars(*_ARTIFACTS)) / "lib")
        self.address = ("127.0.0.1", free_port())
        """The WebHDFS address of the name node: host and port."""
        self.url = f"http://127.0.0.1:{self.address[1]}"
        """The same address as a URL."""
        self._folder = folder
        self.file_system = f"hdfs://127.0.0.1:{free_port()}"
        """The address of the name node for clients in Java, their ``fs.defaultFS``."""
        _configure(folder, self.address[1], self.file_system)
        self._name_node = [*java, f"{_NODES}.namenode.NameNode"]
        data_node = [*java, f"{_NODES}.datanode.DataNode"]
        self.name_node = ServerProcess(self._name_node, folder / "namenode.log", self._answers)
        """Stores the names; without it no request is answered."""
        self.data_node = ServerProcess(data_node, folder / "datanode.log", self._serves)
        """Stores the contents; without it, requests about names are still answered."""

    def start(self) -> None:
        """Start both, and return when files can be written and read.

        Raises:
            ServerError: when one of them does not start within a minute.
        """
        if not (self._folder / "data" / "nn").exists():
            self._format()
        self.name_node.start()
        self.data_node.start()

    def kill(self) -> None:
        """End both with SIGKILL; idempotent."""
        self.data_node.kill()
        self.name_node.kill()

    def ask(self, verb: str, path: str, operation: str, **parameters: object) -> None:
        """Send a WebHDFS request as the superuser: ``ask("PUT", "/mine", "SETOWNER", owner="me")``.

        Raises:
            ServerError: when it is refused; the error has the answer.
        """
        query = urllib.parse.urlencode({"op": operation, "user.name": getpass.getuser(), **parameters})
        request = urllib.request.Request(f"{self.url}/webhdfs/v1{path}?{query}", method=verb)  # noqa: S310  # the server of the test
        try:
            with urllib.request.urlopen(request, timeout=_FORMAT_S):  # noqa: S310  # the server of the test
                pass
        except urllib.error.HTTPError as error:
            msg = f"{operation} {path}: {error.read().decode(errors='replace')}"
            raise ServerError(msg) from error

    def make_folder(self, path: str, owner: str) -> None:
        """Make a folder of an ordinary user, as an administrator does."""
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
        """Return whether a file can be written: the name node counts a killed data node as alive for a while."""
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
            with urllib.request.urlopen(f"{self.url}/{_STATE}", timeout=_PROBE_S) as answer:  # noqa: S310  # the server of the test
                (state,) = json.load(answer)["beans"]
        except (urllib.error.URLError, OSError, ValueError):
            return False
        return bool(state["NumLiveDataNodes"] == 1 and state["FSState"] == "Operational")


def _put(url: str) -> http.client.HTTPResponse:
    request = urllib.request.Request(url, data=b"", method="PUT")  # noqa: S310  # the server of the test
    answer: http.client.HTTPResponse = urllib.request.urlopen(request, timeout=_PROBE_S)  # noqa: S310  # the server of the test
    return answer


def _configure(folder: Path, web_port: int, file_system: str) -> None:
    conf = folder / "conf"
    for each in (conf / "webapps" / "hdfs", conf / "webapps" / "datanode"):
        os.makedirs(each, exist_ok=True)
    rpc = file_system.removeprefix("hdfs://")
    core = {"fs.defaultFS": file_system, "hadoop.tmp.dir": str(folder / "data")}
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
        **CLOSES_SOON,
    }
    write_hadoop_settings(conf, core, hdfs_site=site)
