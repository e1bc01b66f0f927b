"""A YARN with services, its HDFS, and a profile for both, and what tests ask of them."""

from __future__ import annotations

import json
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING

import psutil

from heron_cli.client import connect
from heron_testing.heron_run import processes_of
from heron_testing.waiting import wait_until
from heron_testing_servers.hdfs import HdfsServer
from heron_testing_servers.s3 import S3Server
from heron_testing_servers.yarn_services import NODES, YarnServices
from heron_testing_servers.zookeeper import ZooKeeperServer
from on_cluster import BACK_S, OnCluster, shipped_profile

if TYPE_CHECKING:
    from heron_testing.sandbox import Sandbox

__all__ = ["STATUS_S", "YarnPlace", "fresh_place"]

STATUS_S = 10.0
"""How soon a person learns why a container does not run."""

_PROFILE = """\
extends: local
scheduler:
  driver: yarn
  address: {url}
  hdfs: {hdfs}
  root: /heron/jobs
  {options}
  stable_s: 0
  stop_grace_s: 3
  start_s: 120
engine: {{heron.executor.stable.s: 0}}
"""
_MASTER = "org.apache.hadoop.yarn.service.ServiceMaster"
_FOLDERS = "/heron/jobs", "/user/root/.yarn/services"
# All that runs in the cluster belongs to the sandbox, which looks for it; node managers set HOME themselves.
_PYTHON = """\
#!/bin/sh
export HOME={home} TMPDIR={tmp}
exec {python} "$@"
"""


@contextmanager
def fresh_place(sandbox: Sandbox, hdfs: HdfsServer, yarn: YarnServices) -> Iterator[YarnPlace]:
    """Start what does not run; at the end, remove what a failed test has left."""
    yarn.start()
    yield YarnPlace(sandbox, hdfs, yarn)
    yarn.start()
    yarn.end_applications()
    for node in NODES:
        yarn.label(node, "")
    for each in _FOLDERS:
        hdfs.ask("DELETE", each, "DELETE", recursive="true")


class YarnPlace:
    """The nodes, the HDFS with their files, and the profile ``cluster`` that names both."""

    def __init__(self, sandbox: Sandbox, hdfs: HdfsServer, yarn: YarnServices) -> None:
        self.sandbox, self.hdfs, self.yarn = sandbox, hdfs, yarn
        self.commands = OnCluster(sandbox, "cluster")
        self._python = sandbox.root / "python"
        self.write_profile(Path(sys.executable))

    def write_profile(self, interpreter: Path, *options: str) -> None:
        """Write the profile, with this interpreter on the nodes, and further options of the scheduler."""
        text = _PYTHON.format(home=self.sandbox.home, tmp=self.sandbox.tmp, python=interpreter)
        self._python.write_text(text, encoding="utf-8")
        self._python.chmod(0o700)
        lines = "\n  ".join((f"python: {self._python}", *options))
        self.sandbox.write_profile("cluster", _PROFILE.format(url=self.yarn.url, hdfs=self.hdfs.url, options=lines))

    def use_servers(self, zookeeper: ZooKeeperServer, s3: S3Server) -> OnCluster:
        """Extend the shipped profile: state in ZooKeeper, packages in S3."""
        own = {"address": self.yarn.url, "hdfs": self.hdfs.url, "root": _FOLDERS[0], "python": str(self._python)}
        return shipped_profile(self.sandbox, "yarn", own, "2 nodes", (zookeeper, s3))

    def containers(self, topology: str) -> int:
        """Return how many containers of a topology YARN runs; the masters of its services do not count."""
        found = (self.yarn.ask("GET", "/ws/v1/cluster/apps?states=RUNNING")["apps"] or {}).get("app", [])
        mine = [each for each in found if str(each["name"]).startswith(f"heron-{topology}-")]
        return sum(int(str(each["runningContainers"])) - 1 for each in mine)

    def node_of(self, process: psutil.Process) -> str:
        """Return the node of a process, by the port that its node manager told it; empty for another cluster."""
        port = process.environ().get("NM_PORT")
        return next((name for name, each in self.yarn.ports.items() if str(each) == port), "")

    def masters(self) -> dict[psutil.Process, str]:
        """Return the processes of the masters of services, with their nodes."""
        found = {}
        for each in psutil.process_iter():
            with suppress(psutil.Error):
                words = each.cmdline()
                if words and words[0].endswith("java") and _MASTER in words and (node := self.node_of(each)):
                    found[each] = node
        return found

    def lose(self, node: str, *, machine: bool = False) -> None:
        """Kill a node manager, and wait until YARN has lost it.

        The processes of its containers go on, unless the `machine` is lost.
        """
        self.yarn.nodes[node].kill()
        for master, place in self.masters().items():  # otherwise this process of YARN would stay for ever
            if place == node:
                master.kill()
        for each in processes_of(self.sandbox.home) if machine else ():
            with suppress(psutil.Error):
                if self.node_of(each) == node:
                    each.kill()
        wait_until(lambda: node not in self.yarn.ready_nodes(), BACK_S, f"{node} is lost")

    def leaves_nothing(self) -> None:
        """Check that no application runs, and that neither Heron nor YARN has a file of one."""
        assert self.yarn.applications() == []
        assert [each for path in _FOLDERS for each in self._entries(path)] == []

    def told(self, topology: str) -> str:
        """Return what `heron status` prints."""
        run = self.sandbox.start_command("status", topology, "--profile", "cluster", "--timeout", "1")
        run.wait()
        return run.all_output

    def waits_for(self, words: str, topology: str) -> None:
        """Check that YARN says these words about a container within ten seconds, and that the status has them."""
        home = self.sandbox.home / ".heron"
        overrides = {"statemgr.root": str(home / "state")}
        with connect("cluster", config_path=home / "profiles", overrides=overrides, read_only=True) as client:
            job = client.topology(topology).job
            wait_until(lambda: words in str(job()), STATUS_S, f"the job has {words!r}")
        assert words in " ".join(self.told(topology).split())

    def files(self, path: str) -> dict[str, str]:
        """Return the modes of all files below a folder of HDFS."""
        found: dict[str, str] = {}
        for name, entry in self._entries(path).items():
            each = f"{path}/{name}"
            found |= self.files(each) if entry["type"] == "DIRECTORY" else {each: str(entry["permission"])}
        return found

    def _entries(self, path: str) -> dict[str, dict[str, object]]:
        url = f"{self.hdfs.url}/webhdfs/v1{path}?op=LISTSTATUS&user.name=root"
        try:
            with urllib.request.urlopen(url) as answer:  # noqa: S310  # the server of the test
                return {each["pathSuffix"]: each for each in json.load(answer)["FileStatuses"]["FileStatus"]}
        except urllib.error.HTTPError as error:
            if error.code != HTTPStatus.NOT_FOUND:
                raise
            return {}
