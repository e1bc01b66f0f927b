"""A topology on a YARN with two nodes; no line is lost with a container."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil
import pytest

from heron_testing.heron_run import processes_of
from heron_testing.waiting import wait_until, wait_until_grown
from heron_testing_servers.hdfs import HdfsServer
from heron_testing_servers.yarn_services import YarnServices
from line_journal import Lines
from wheel_archive import write_wheel_archive

if TYPE_CHECKING:
    from heron_testing.sandbox import Sandbox

_HERE = ("--profile", "cluster")
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
# All that runs in the cluster belongs to the sandbox, which looks for it; node managers set HOME themselves.
_PYTHON = """\
#!/bin/sh
export HOME={home} TMPDIR={tmp}
exec {python} "$@"
"""
_SUBMITTED_S = 120.0
_BACK_S = 240.0
_LAUNCHER = "heron_scheduler_kit.managed.launcher"


@pytest.fixture
def cluster(sandbox: Sandbox, hdfs: HdfsServer, yarn_services: YarnServices) -> Iterator[YarnServices]:
    """All nodes, without a service, and the profile ``cluster`` that names them."""
    yarn_services.start()
    _write_profile(sandbox, hdfs, yarn_services, Path(sys.executable))
    yield yarn_services
    yarn_services.start()
    yarn_services.end_applications()  # of a failed test


def _write_profile(sandbox: Sandbox, hdfs: HdfsServer, yarn: YarnServices, interpreter: Path, *options: str) -> None:
    python = sandbox.root / "python"
    python.write_text(_PYTHON.format(home=sandbox.home, tmp=sandbox.tmp, python=interpreter))
    python.chmod(0o700)
    lines = "\n  ".join((f"python: {python}", *options))
    sandbox.write_profile("cluster", _PROFILE.format(url=yarn.url, hdfs=hdfs.url, options=lines))


Harm = Callable[["YarnJournal"], set[int]]


class YarnJournal:
    """A run that processes lines from the beginning until `let_go`."""

    def __init__(self, sandbox: Sandbox, cluster: YarnServices) -> None:
        self.sandbox, self.cluster = sandbox, cluster
        self.lines = Lines(sandbox, pause_s=0.05, command="submit cluster")
        assert self.lines.run.wait(_SUBMITTED_S) == 0, self.lines.run.all_output
        self.flows("the start")

    def flows(self, after: str) -> None:
        """Wait until more lines are acked."""
        wait_until_grown(self.lines.acked_bytes, _BACK_S, f"lines after {after}")

    def attempts(self) -> dict[int, int]:
        """Return the number of starts of each running container."""
        found = _status(self.sandbox, "journal").get("containers", [])
        return {each["container_id"]: each["attempts"] for each in found if each["running"]}

    def launchers(self) -> dict[int, psutil.Process]:
        """Return the newest launcher of each container."""
        found: dict[int, psutil.Process] = {}
        for each in sorted(processes_of(self.sandbox.home), key=psutil.Process.create_time):
            with contextlib.suppress(psutil.Error, OSError):
                if _LAUNCHER in each.cmdline():
                    found[int(Path(f"{each.cwd()}/launch").readlink().stem)] = each
        return found

    def is_back(self, before: dict[int, int], ended: set[int], after: str) -> None:
        """Wait until the containers `ended` run again, and check that no other one was restarted."""
        now: dict[int, int] = {}

        def are_back() -> bool:
            now.clear()
            now.update(self.attempts())
            return len(now) == len(before) and all(now[each] > before[each] for each in ended)

        wait_until(are_back, _BACK_S, f"{ended} of {before} run again after {after}")
        assert {each for each in now if now[each] > before[each]} == ended, f"{after}: {before} became {now}"

    def survives(self, harm: Harm) -> None:
        """Do harm, and wait until the containers that it moves run again, alone, and lines flow."""
        wait_until(lambda: len(self.attempts()) == 3, _BACK_S, "all containers run")
        before = self.attempts()
        self.is_back(before, harm(self), harm.__name__)
        self.flows(harm.__name__)
        self.has_no_copies(harm.__name__)

    def has_no_copies(self, after: str) -> None:
        """Wait until each container has one executor: the old one ends by itself."""

        def executors() -> list[int]:
            return [len(self.lines.run.processes("executor", f"/c{each}.json")) for each in range(3)]

        wait_until(lambda: executors() == [1, 1, 1], _BACK_S, f"one executor for each container after {after}")

    def let_go(self) -> None:
        """End the run, and check that every word of every line has arrived."""
        self.lines.let_go()
        _ends(self.sandbox, "journal")
        self.lines.check()


def kill_launcher(journal: YarnJournal) -> set[int]:
    """Kill the process of a container of YARN: another container takes its place."""
    journal.launchers()[1].kill()
    return {1}


def test_a_bare_interpreter_runs_a_topology_from_wheels(
    sandbox: Sandbox, hdfs: HdfsServer, cluster: YarnServices
) -> None:
    """`scheduler.install: wheels`: the nodes have Python alone, and a killed container starts from the wheels again."""
    bare = Path(sys.base_prefix, "bin", f"python3.{sys.version_info[1]}")
    without = subprocess.run([bare, "-P", "-c", "import heron"], capture_output=True, text=True, check=False)
    assert "No module named 'heron'" in without.stderr
    wheels = write_wheel_archive(["heron-bundle-local", "heron-scheduler-yarn"], sandbox.root / "wheels.zip")
    _write_profile(sandbox, hdfs, cluster, bare, "install: wheels", f"wheels: {wheels}")
    journal = YarnJournal(sandbox, cluster)
    journal.survives(kill_launcher)
    assert {Path(each.exe()).resolve() for each in journal.lines.run.processes("executor")} == {bare.resolve()}
    journal.let_go()


def _status(sandbox: Sandbox, topology: str) -> dict[str, Any]:
    """Return the output of `heron status`; empty while the topology manager is being restarted."""
    try:
        return sandbox.status_document(topology, *_HERE)
    except AssertionError:
        return {}


def _ends(sandbox: Sandbox, topology: str) -> None:
    """Wait until a topology is listed as finished, and nothing is left."""

    def over() -> bool:
        listed = json.loads(sandbox.output_of("list", "cluster", "--json"))
        finished = any(each["name"] == topology and each["state"] == "finished" for each in listed)
        return finished and not sandbox.remaining()

    wait_until(over, _BACK_S, f"{topology} has ended and left nothing")
