"""A YARN with services, its HDFS, and a profile for both, and what tests ask of them."""

from __future__ import annotations

import json
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING

from heron_cli.client import connect
from heron_testing.waiting import wait_until
from heron_testing_servers.hdfs import HdfsServer
from heron_testing_servers.yarn_services import YarnServices
from on_cluster import OnCluster

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
    for each in _FOLDERS:
        hdfs.ask("DELETE", each, "DELETE", recursive="true")


class YarnPlace:
    """The nodes, the HDFS with their files, and the profile ``cluster`` that names both."""

    def __init__(self, sandbox: Sandbox, hdfs: HdfsServer, yarn: YarnServices) -> None:
        self.sandbox, self.hdfs, self.yarn = sandbox, hdfs, yarn
        self.commands = OnCluster(sandbox, "cluster")
        self.write_profile(Path(sys.executable))

    def write_profile(self, interpreter: Path, *options: str) -> None:
        """Write the profile, with this interpreter on the nodes."""
        python = self.sandbox.root / "python"
        python.write_text(_PYTHON.format(home=self.sandbox.home, tmp=self.sandbox.tmp, python=interpreter))
        python.chmod(0o700)
        lines = "\n  ".join((f"python: {python}", *options))
        self.sandbox.write_profile("cluster", _PROFILE.format(url=self.yarn.url, hdfs=self.hdfs.url, options=lines))

    def containers(self, topology: str) -> int:
        """Return how many containers of a topology YARN runs; the masters of its services do not count."""
        found = (self.yarn.ask("GET", "/ws/v1/cluster/apps?states=RUNNING")["apps"] or {}).get("app", [])
        mine = [each for each in found if str(each["name"]).startswith(f"heron-{topology}-")]
        return sum(int(str(each["runningContainers"])) - 1 for each in mine)

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

    def _entries(self, path: str) -> list[str]:
        url = f"{self.hdfs.url}/webhdfs/v1{path}?op=LISTSTATUS&user.name=root"
        try:
            with urllib.request.urlopen(url) as answer:  # noqa: S310  # the server of the test
                return [each["pathSuffix"] for each in json.load(answer)["FileStatuses"]["FileStatus"]]
        except urllib.error.HTTPError as error:
            if error.code != HTTPStatus.NOT_FOUND:
                raise
            return []
