"""Topologies on a standalone Spark of two workers, all parts of which are killed in turn."""

from __future__ import annotations

import contextlib
import itertools
import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import psutil
import pytest

from heron.testing.pytest_plugin import wait_until
from heron.testing.servers.spark import SparkCluster

if TYPE_CHECKING:
    from conftest import HeronRun, Sandbox

_PROFILE = """\
extends: spark
scheduler:
  master: {url}
  # All that runs in the cluster belongs to the test's world, and is looked for there.
  conf: {{spark.executorEnv.HOME: "{home}", spark.executorEnv.TMPDIR: "{tmp}"}}
engine: {{heron.executor.stable.s: 0}}
"""
_HERE = ("--profile", "cluster")
_LINES, _WORDS = 30_000, 3
_BACK_S = 40.0  # ten seconds on an idle machine
_OVER_S = 60.0


@dataclass
class Submitted:
    """The topology ``journal`` in the cluster; it does not end before it is let go."""

    sandbox: Sandbox
    run: HeronRun

    def status(self) -> dict[str, Any]:
        """What `heron status` says."""
        found: dict[str, Any] = json.loads(self.sandbox.say("status", "journal", *_HERE, "--json"))
        return found

    def attempts(self) -> dict[int, int]:
        """How often each container was started; those that run."""
        return {each["container_id"]: each["attempts"] for each in self.status()["containers"] if each["running"]}

    def written(self) -> int:
        """The size of the journal."""
        with contextlib.suppress(OSError):
            return (self.run.out / "journal").stat().st_size
        return 0

    def flows(self) -> None:
        """Waits until more lines arrive."""
        before = self.written()
        wait_until(lambda: self.written() > before, _BACK_S, "lines arrive")

    def is_back(self, before: dict[int, int], *ended: int) -> None:
        """Waits until the containers `ended` run anew, and looks that no other one was touched."""
        wait_until(lambda: len(self.attempts()) == len(before), _BACK_S, f"containers {ended} run again: {before}")
        now = self.attempts()
        assert {each for each in now if now[each] > before[each]} == set(ended)
        wait_until(self.all_run, _BACK_S, "all tasks run")

    def all_run(self) -> bool:
        """Whether the topology manager knows every task as running or ended."""
        tasks = self.status()["status"]["tasks"]
        return len(tasks) == 6 and {each["state"] for each in tasks} <= {"running", "ended"}

    def executor(self, container_id: int) -> psutil.Process:
        """The container's executor."""
        return self.run.the("executor", f"/c{container_id}.json")

    def spark_executor(self, container_id: int) -> psutil.Process:
        """The JVM of Spark that the container stands in, found by what the status says."""
        (where,) = (each["where"] for each in self.status()["containers"] if each["container_id"] == container_id)
        found = re.fullmatch(r"executor (\d+) on \S+", where)
        assert found, where
        python_worker = self.executor(container_id).parent()
        jvm = python_worker and python_worker.parent() and python_worker.parents()[1]
        assert jvm
        words = jvm.cmdline()
        assert words[words.index("--executor-id") + 1] == found[1]
        return jvm

    def is_over(self) -> bool:
        """Whether it is listed as finished and nothing of it is left; what has ended is tidied up by any list."""
        return "finished" in self.sandbox.say("list", "cluster") and not self.sandbox.leftovers()

    def let_go(self) -> None:
        """Lets it end, and checks that every word of every line has arrived."""
        (self.run.out / "held").unlink()
        wait_until(self.is_over, _OVER_S, "it has ended and left nothing")
        rows = (line.split() for line in (self.run.out / "journal").read_text(encoding="utf-8").splitlines())
        arrived = {(int(line), word) for line, word, *_ in rows}
        expected = {(line, f"word-{word}-{line % 7}") for line, word in itertools.product(range(_LINES), range(_WORDS))}
        assert arrived == expected


@pytest.fixture
def cluster(sandbox: Sandbox, spark: SparkCluster) -> SparkCluster:
    """The cluster whole, and the profile ``cluster`` that names it."""
    spark.start()
    folder = sandbox.home / ".heron" / "profiles"
    folder.mkdir(parents=True)
    profile = _PROFILE.format(url=spark.url, home=sandbox.home, tmp=sandbox.tmp)
    (folder / "cluster.yaml").write_text(profile, encoding="utf-8")
    return spark


@pytest.fixture
def journal(sandbox: Sandbox, cluster: SparkCluster) -> Submitted:
    """The topology at work."""
    assert cluster is not None
    run = sandbox.start("journal.py", command="submit cluster", args=("--lines", str(_LINES)))
    (run.out / "held").touch()
    assert run.wait() == 0, run.spoken
    submitted = Submitted(sandbox, run)
    submitted.flows()
    wait_until(submitted.all_run, _BACK_S, "all tasks run")
    return submitted


def kill_python_worker(journal: Submitted) -> set[int]:
    """The process that Spark runs the task in."""
    worker = journal.executor(1).parent()
    assert worker
    worker.kill()
    return {1}


def kill_python_daemon(journal: Submitted) -> set[int]:
    """And the one that forked it: nobody below it is told by Spark."""
    worker = journal.executor(1).parent()
    assert worker
    daemon = worker.parent()
    assert daemon
    daemon.kill()
    return {1}


def kill_executor_jvm(journal: Submitted) -> set[int]:
    """A Spark executor."""
    journal.spark_executor(1).kill()
    return {1}


def kill_topology_manager(journal: Submitted) -> set[int]:
    """The executor of container 0, whose topology manager leads."""
    journal.executor(0).kill()
    return {0}


def kill_two(journal: Submitted) -> set[int]:
    """Topology manager and half of the data path in one moment."""
    first, second = journal.spark_executor(0), journal.spark_executor(2)
    first.kill()
    second.kill()
    return {0, 2}


def kill_driver(journal: Submitted) -> set[int]:
    """The application goes with it, and with that every container."""
    journal.run.the("spark driver").kill()
    return {0, 1, 2}


def restart_one(journal: Submitted) -> set[int]:
    """On demand, without any harm done."""
    said = journal.sandbox.say("restart", "journal", "1", *_HERE)
    assert "container 1 of journal is back" in said
    return {1}


@pytest.mark.parametrize(
    "harm",
    [
        kill_python_worker,
        kill_python_daemon,
        kill_executor_jvm,
        kill_topology_manager,
        kill_two,
        kill_driver,
        restart_one,
    ],
)
def test_no_line_is_lost_whatever_dies(journal: Submitted, harm: Callable[[Submitted], set[int]]) -> None:
    """At least once: what died is started anew and nothing else is, and the status says so; then all is counted."""
    before = journal.attempts()
    assert journal.written() < _LINES * _WORDS * len("1 word-1-1 1 1"), "it is under load"
    processes = {each: journal.executor(each) for each in before}
    harmed = harm(journal)
    wait_until(lambda: not any(processes[each].is_running() for each in harmed), _BACK_S, "the old executors are gone")
    journal.is_back(before, *harmed)
    journal.let_go()
