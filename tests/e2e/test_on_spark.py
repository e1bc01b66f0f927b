"""Topologies on a standalone Spark of two workers, all parts of which are killed in turn."""

from __future__ import annotations

import contextlib
import itertools
import json
import re
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import psutil
import pytest

from heron.testing.pytest_plugin import wait_until
from heron.testing.servers.spark import SparkCluster, SparkWorker

if TYPE_CHECKING:
    from conftest import HeronRun, Sandbox

_PROFILE = """\
extends: spark
scheduler:
  master: {url}
  start_s: 90
  # All that runs in the cluster belongs to the test's world, and is looked for there.
  conf: {{spark.executorEnv.HOME: "{home}", spark.executorEnv.TMPDIR: "{tmp}"}}
engine: {{heron.executor.stable.s: 0}}
"""
_HERE = ("--profile", "cluster")

pytestmark = pytest.mark.timeout(300)
_LINES, _WORDS = 30_000, 3
_BACK_S = 90.0  # ten seconds on an idle machine; a JVM needs many where others are busy too
_OVER_S = 60.0


@dataclass
class Submitted:
    """The topology ``journal`` in the cluster; it does not end before it is let go."""

    sandbox: Sandbox
    cluster: SparkCluster
    run: HeronRun

    def status(self) -> dict[str, Any]:
        """What `heron status` says."""
        found: dict[str, Any] = json.loads(self.sandbox.say("status", "journal", *_HERE, "--json"))
        return found

    def attempts(self) -> dict[int, int]:
        """How often each container was started; those that run. None do while nobody can tell."""
        try:
            status = self.status()
        except AssertionError:  # the topology manager is being started again, says the command
            return {}
        return {each["container_id"]: each["attempts"] for each in status["containers"] if each["running"]}

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

    def worker(self, container_id: int) -> SparkWorker:
        """The worker that the container's Spark executor is of."""
        pid = self.spark_executor(container_id).ppid()
        return next(each for each in self.cluster.workers if each.process.pid == pid)

    def containers_of(self, worker: SparkWorker) -> set[int]:
        """Those that stand in executors of a worker."""
        return {each for each in range(3) if self.worker(each) is worker}

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
    """The cluster whole and empty, and the profile ``cluster`` that names it."""
    for worker in spark.workers:
        if worker.process.ended:
            worker.process.kill()
    spark.start()
    wait_until(lambda: not spark.applications(), 30.0, "the cluster is empty")
    folder = sandbox.home / ".heron" / "profiles"
    folder.mkdir(parents=True)
    profile = _PROFILE.format(url=spark.url, home=sandbox.home, tmp=sandbox.tmp)
    (folder / "cluster.yaml").write_text(profile, encoding="utf-8")
    return spark


@pytest.fixture
def journal(sandbox: Sandbox, cluster: SparkCluster) -> Submitted:
    """The topology at work."""
    run = sandbox.start("journal.py", command="submit cluster", args=("--lines", str(_LINES)))
    (run.out / "held").touch()
    assert run.wait() == 0, run.spoken
    submitted = Submitted(sandbox, cluster, run)
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


def kill_worker(journal: Submitted) -> set[int]:
    """A machine of the cluster, as far as Spark can tell; the next test finds it started again."""
    worker = journal.worker(1)
    harmed = journal.containers_of(worker)
    worker.process.kill()
    return harmed


def decommission_worker(journal: Submitted) -> set[int]:
    """It is to be taken away in order: what runs there has to leave by itself."""
    worker = journal.worker(1)
    harmed = journal.containers_of(worker)
    worker.decommission()
    return harmed


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
        kill_worker,
        decommission_worker,
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


def test_two_topologies_share_a_cluster(journal: Submitted) -> None:
    """Each is an application of its own: ending one is not felt by the other."""
    sandbox = journal.sandbox
    other = sandbox.start("steady.py", command="submit cluster")
    assert other.wait() == 0, other.spoken
    wait_until((other.out / "progress").exists, _BACK_S, "tuples of the other")
    assert len(journal.cluster.applications()) == 2
    before = journal.attempts()
    sandbox.say("kill", "steady", *_HERE)
    assert len(journal.cluster.applications()) == 1
    assert journal.attempts() == before
    journal.let_go()


def test_kill_ends_all_of_it(journal: Submitted) -> None:
    """When the command returns the application is gone from the cluster, and with it every process."""
    journal.sandbox.say("kill", "journal", *_HERE)
    assert journal.cluster.applications() == []
    executors = journal.run.processes("executor")
    assert executors == []


@pytest.mark.parametrize("instant", ["driver", "application", "task", "container"])
def test_a_topology_is_killed_in_each_phase_of_its_start(sandbox: Sandbox, cluster: SparkCluster, instant: str) -> None:
    """Also where the command that submitted it was killed first, and nobody else knows how far it had come."""
    run = sandbox.start("steady.py", command="submit cluster")
    reached: dict[str, Callable[[], object]] = {
        "driver": lambda: run.processes("spark driver"),
        "application": cluster.applications,
        "task": lambda: run.processes("pyspark worker"),
        "container": lambda: run.processes("executor"),
    }
    run.until(reached[instant], instant)
    run.process.kill()
    run.wait()
    sandbox.say("kill", "steady", *_HERE)
    wait_until(lambda: not cluster.applications(), 10.0, "the application is gone")


def test_an_executor_that_never_comes_is_waited_for_and_named(sandbox: Sandbox, cluster: SparkCluster) -> None:
    """The master has promised executors, and no worker starts one: the status says it, and kill ends it."""
    for worker in cluster.workers:
        psutil.Process(worker.process.pid).suspend()
    try:
        run = sandbox.start("steady.py", command="submit cluster")
        assert run.wait() == 0, run.spoken
        listed = sandbox.say("list", "cluster")
        assert "starting" in listed or "running" in listed
        containers = json.loads(sandbox.say("list", "cluster", "--json"))
        assert containers
        sandbox.say("kill", "steady", *_HERE)
    finally:
        for worker in cluster.workers:
            psutil.Process(worker.process.pid).resume()
    wait_until(lambda: not cluster.applications(), 30.0, "the application is gone")


@pytest.mark.parametrize(
    ("setting", "said"),
    [
        ("jvm_heap_mb=60000", r"cluster is too small: the 3 containers need \d+ cores and \d+ MiB.*32768 MiB"),
        ("python=/no/such/python", r"/no/such/python"),
        ("python=/usr/bin/python3", r"No module named|Python 3\.\d+"),
        ("master=spark://127.0.0.1:9", r"no Spark master answers .*Connection refused.*scheduler\.master"),
        ("master=sparc://127.0.0.1:9", r"'sparc://127\.0\.0\.1:9' is no Spark master; known: local, spark://HOST:PORT"),
        ("driver_host=192.0.2.99", r"192\.0\.2\.99"),
    ],
)
def test_what_cannot_run_is_refused_in_one_line(
    sandbox: Sandbox, cluster: SparkCluster, setting: str, said: str
) -> None:
    """Within half a minute, with the numbers or the remedy, and with nothing left running."""
    run = sandbox.start("steady.py", "--set", f"scheduler.{setting}", command="submit cluster")
    assert run.wait() == 2, run.spoken
    (line,) = [each for each in run.stderr.splitlines() if each.startswith("heron: error: ")]
    assert re.search(said, line), line
    wait_until(lambda: not cluster.applications(), 10.0, "no application is left")


def test_no_key_stands_where_spark_shows_it(journal: Submitted) -> None:
    """Neither on Spark's pages, nor in the environment or on the command line of any process, nor in its logs."""
    state = journal.sandbox.home / ".heron" / "state" / "keys" / "journal"
    secrets = re.findall(rb'"secret": ?"([^"]{40})"', state.read_bytes())
    assert len(secrets) == 4
    page = next(each["url"] for each in journal.status()["links"] if each["title"] == "Spark UI")
    (application,) = journal.cluster.applications()
    shown = []
    for part in ("environment", "allexecutors", "jobs", "stages"):
        with urllib.request.urlopen(f"{page}/api/v1/applications/{application}/{part}", timeout=20) as answer:  # noqa: S310
            shown.append(answer.read())
    for each in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            if each.environ().get("HOME") == str(journal.sandbox.home):
                shown.append("\n".join([*each.cmdline(), *map(str, each.environ().items())]).encode())
    logs = [*journal.cluster.folder.rglob("std*"), *(journal.sandbox.home / ".heron" / "logs").rglob("*")]
    shown += [path.read_bytes() for path in logs if path.is_file()]
    assert len(shown) > 20
    assert not [text for text in shown for secret in secrets if secret in text]
    journal.let_go()
