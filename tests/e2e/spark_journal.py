"""The topology ``journal`` on a Spark cluster, and the Spark processes that run it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import psutil

from heron_testing.waiting import wait_until, wait_until_grown
from heron_testing_servers.spark import SparkCluster, SparkWorker
from line_journal import Lines

if TYPE_CHECKING:
    from heron_testing.sandbox import Sandbox

__all__ = ["BACK_S", "HERE", "SUBMITTED_S", "SparkJournal", "fresh", "name_cluster", "refusal", "status_or_empty"]

HERE = ("--profile", "cluster")
BACK_S = 150.0
"""Ten seconds on an idle machine; a JVM needs many more on a busy one."""

SUBMITTED_S = 200.0
"""Longer than a submission waits at most: `start_s` of the profile for Spark, and some time for the first container."""

_OVER_S = 60.0
_TASKS = 6
_PROFILE = """\
extends: spark
scheduler:
  master: {url}
  start_s: 90
  stable_s: 0
  restart_backoff_s: 0.001  # so that the next executor is asked for before Spark has noticed the end of this one
  # All that runs in the cluster belongs to the sandbox of the test, which looks for it.
  conf: {{spark.executorEnv.HOME: "{home}", spark.executorEnv.TMPDIR: "{tmp}", spark.master.ui.port: "{page}"}}
engine: {{heron.executor.stable.s: 0}}
"""


def fresh(sandbox: Sandbox, cluster: SparkCluster) -> SparkCluster:
    """Start the stopped parts of the cluster, wait until it is empty, and write the profile ``cluster``."""
    cluster.start()
    wait_until(lambda: not cluster.applications(), 30.0, "the cluster is empty")
    name_cluster(sandbox, cluster)
    return cluster


def name_cluster(sandbox: Sandbox, cluster: SparkCluster) -> None:
    """Write the profile ``cluster``; containers that tests kill are always restarted."""
    text = _PROFILE.format(url=cluster.url, page=cluster.page_port, home=sandbox.home, tmp=sandbox.tmp)
    sandbox.write_profile("cluster", text)


def status_or_empty(sandbox: Sandbox, topology: str) -> dict[str, Any]:
    """Return the output of `heron status`; empty while the topology manager is being restarted."""
    try:
        return sandbox.status_document(topology, *HERE)
    except AssertionError:
        return {}


def refusal(sandbox: Sandbox, *settings: str) -> str:
    """Return the one line with which `heron submit` refuses a topology."""
    words = [word for each in settings for word in ("--set", f"scheduler.{each}")]
    run = sandbox.start("steady.py", *words, command="submit cluster")
    assert run.wait(SUBMITTED_S) == 2, run.all_output
    (line,) = [each for each in run.stderr.splitlines() if each.startswith("heron: error: ")]
    return line


class SparkJournal:
    """A run that processes lines from the beginning until `let_go`."""

    def __init__(self, sandbox: Sandbox, cluster: SparkCluster) -> None:
        self.sandbox, self.cluster = sandbox, cluster
        self.lines = Lines(sandbox, pause_s=0.05, command="submit cluster")
        self.run = self.lines.run
        assert self.run.wait(SUBMITTED_S) == 0, self.run.all_output
        self.flows("the start")
        wait_until(self.all_run, BACK_S, "all tasks run")

    def status(self) -> dict[str, Any]:
        """Return the output of `heron status`."""
        return self.sandbox.status_document("journal", *HERE)

    def attempts(self) -> dict[int, int]:
        """Return the number of starts of each running container; empty while there is no status."""
        containers = status_or_empty(self.sandbox, "journal").get("containers", [])
        return {each["container_id"]: each["attempts"] for each in containers if each["running"]}

    def flows(self, after: str) -> None:
        """Wait until more lines are acked."""
        wait_until_grown(self.lines.acked_bytes, BACK_S, f"lines after {after}")

    def is_back(self, before: dict[int, int], ended: set[int], after: str) -> None:
        """Wait until the containers `ended` run again, and check that no other one was restarted."""
        now: dict[int, int] = {}

        def are_back() -> bool:
            now.clear()
            now.update(self.attempts())
            return len(now) == len(before) and all(now[each] > before[each] for each in ended)

        wait_until(are_back, BACK_S, f"{ended} of {before} run again after {after}")
        assert {each for each in now if now[each] > before[each]} == ended, f"{after}: {before} became {now}"
        wait_until(self.all_run, BACK_S, f"all tasks run after {after}")

    def all_run(self) -> bool:
        """Return whether the topology manager reports every task as running."""
        tasks = status_or_empty(self.sandbox, "journal").get("status", {}).get("tasks", [])
        return len(tasks) == _TASKS and {each["state"] for each in tasks} == {"running"}

    def executor(self, container_id: int) -> psutil.Process:
        """Return the container's executor."""
        return self.run.the("executor", f"/c{container_id}.json")

    def container(self, container_id: int) -> list[psutil.Process]:
        """Return all processes of the container: its executor and the descendants of that."""
        executor = self.executor(container_id)
        return [executor, *executor.children(recursive=True)]

    def python_worker(self, container_id: int) -> psutil.Process:
        """Return the process in which Spark runs the container's task."""
        worker = self.executor(container_id).parent()
        assert worker
        return worker

    def spark_executor(self, container_id: int) -> psutil.Process:
        """Return the JVM of the Spark executor that runs the container, found through the status."""
        (where,) = (each["where"] for each in self.status()["containers"] if each["container_id"] == container_id)
        found = re.fullmatch(r"executor (\d+) on \S+", where)
        assert found, where
        jvm = self.python_worker(container_id).parents()[1]
        words = jvm.cmdline()
        assert words[words.index("--executor-id") + 1] == found[1]
        return jvm

    def granted(self, container_id: int) -> tuple[int, int]:
        """Return cores and MiB of heap of the Spark executor that runs the container."""
        words = self.spark_executor(container_id).cmdline()
        (heap,) = (each for each in words if each.startswith("-Xmx"))
        return int(words[words.index("--cores") + 1]), int(heap.removeprefix("-Xmx").removesuffix("M"))

    def worker(self, container_id: int) -> SparkWorker:
        """Return the worker of the container's Spark executor."""
        pid = self.spark_executor(container_id).ppid()
        return next(each for each in self.cluster.workers if each.process.pid == pid)

    def containers_of(self, worker: SparkWorker) -> set[int]:
        """Return the containers that run in executors of a worker."""
        return {each for each in range(3) if self.worker(each) is worker}

    def is_over(self) -> bool:
        """Return whether it is listed as finished and nothing of it is left; any list cleans up ended topologies."""
        return "finished" in self.sandbox.output_of("list", "cluster") and not self.sandbox.remaining()

    def let_go(self) -> None:
        """End the run, and check that every word of every line has arrived."""
        self.lines.let_go()
        wait_until(self.is_over, _OVER_S, "the topology has ended and left nothing")
        self.lines.check()
