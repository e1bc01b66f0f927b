"""The topology ``journal`` submitted to a Spark cluster, and the processes that it stands in there."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import psutil
from flowing import write_profile
from line_journal import Lines

from heron_testing.pytest_plugin import wait_until
from servers.spark import SparkCluster, SparkWorker

if TYPE_CHECKING:
    from conftest import Sandbox

__all__ = ["BACK_S", "HERE", "SparkJournal", "fresh", "name_cluster", "refusal", "status_if_told"]

HERE = ("--profile", "cluster")
BACK_S = 90.0
"""Ten seconds on an idle machine; a JVM needs many where others are busy too."""

_OVER_S = 60.0
_TASKS = 6
_PROFILE = """\
extends: spark
scheduler:
  master: {url}
  start_s: 90
  stable_s: 0
  restart_backoff_s: 0.001  # so that the next executor is asked for before Spark has noticed the end of this one
  # All that runs in the cluster belongs to the test's world, and is looked for there.
  conf: {{spark.executorEnv.HOME: "{home}", spark.executorEnv.TMPDIR: "{tmp}", spark.master.ui.port: "{page}"}}
engine: {{heron.executor.stable.s: 0}}
"""


def fresh(sandbox: Sandbox, cluster: SparkCluster) -> SparkCluster:
    """Starts what is not up of it, waits until it is empty, and names it in the profile ``cluster``."""
    cluster.start()
    wait_until(lambda: not cluster.applications(), 30.0, "the cluster is empty")
    name_cluster(sandbox, cluster)
    return cluster


def name_cluster(sandbox: Sandbox, cluster: SparkCluster) -> None:
    """Writes the profile ``cluster``; containers that tests kill are never given up."""
    text = _PROFILE.format(url=cluster.url, page=cluster.page_port, home=sandbox.home, tmp=sandbox.tmp)
    write_profile(sandbox, "cluster", text)


def status_if_told(sandbox: Sandbox, topology: str) -> dict[str, Any]:
    """What `heron status` says; nothing while the topology manager is being started again, says the command."""
    try:
        found: dict[str, Any] = json.loads(sandbox.say("status", topology, *HERE, "--json"))
    except AssertionError:
        return {}
    return found


def refusal(sandbox: Sandbox, *settings: str) -> str:
    """What `heron submit` says of a topology that it does not start: one line."""
    words = [word for each in settings for word in ("--set", f"scheduler.{each}")]
    run = sandbox.start("steady.py", *words, command="submit cluster")
    assert run.wait() == 2, run.spoken
    (line,) = [each for each in run.stderr.splitlines() if each.startswith("heron: error: ")]
    return line


class SparkJournal:
    """It is at work from the beginning, and goes on until `let_go`."""

    def __init__(self, sandbox: Sandbox, cluster: SparkCluster) -> None:
        self.sandbox, self.cluster = sandbox, cluster
        self.lines = Lines(sandbox, pause_s=0.05, command="submit cluster")
        self.run = self.lines.run
        assert self.run.wait() == 0, self.run.spoken
        self.flows("the start")
        wait_until(self.all_run, BACK_S, "all tasks run")

    def status(self) -> dict[str, Any]:
        """What `heron status` says."""
        found: dict[str, Any] = json.loads(self.sandbox.say("status", "journal", *HERE, "--json"))
        return found

    def attempts(self) -> dict[int, int]:
        """How often each container was started; those that run. None do while nobody can tell."""
        containers = status_if_told(self.sandbox, "journal").get("containers", [])
        return {each["container_id"]: each["attempts"] for each in containers if each["running"]}

    def flows(self, after: str) -> None:
        """Waits until more lines are acked."""
        before = self.lines.acked_bytes()
        wait_until(lambda: self.lines.acked_bytes() > before, BACK_S, f"lines after {after}")

    def is_back(self, before: dict[int, int], ended: set[int], after: str) -> None:
        """Waits until the containers `ended` run anew, and looks that no other one was touched."""
        now: dict[int, int] = {}

        def are_back() -> bool:
            now.clear()
            now.update(self.attempts())
            return len(now) == len(before) and all(now[each] > before[each] for each in ended)

        wait_until(are_back, BACK_S, f"{ended} of {before} run again after {after}")
        assert {each for each in now if now[each] > before[each]} == ended, f"{after}: {before} became {now}"
        wait_until(self.all_run, BACK_S, f"all tasks run after {after}")

    def all_run(self) -> bool:
        """Whether the topology manager knows every task as running."""
        tasks = status_if_told(self.sandbox, "journal").get("status", {}).get("tasks", [])
        return len(tasks) == _TASKS and {each["state"] for each in tasks} == {"running"}

    def executor(self, container_id: int) -> psutil.Process:
        """The container's executor."""
        return self.run.the("executor", f"/c{container_id}.json")

    def container(self, container_id: int) -> list[psutil.Process]:
        """All processes of the container: its executor, and all that it started."""
        executor = self.executor(container_id)
        return [executor, *executor.children(recursive=True)]

    def python_worker(self, container_id: int) -> psutil.Process:
        """The process in which Spark runs the container's task."""
        worker = self.executor(container_id).parent()
        assert worker
        return worker

    def spark_executor(self, container_id: int) -> psutil.Process:
        """The JVM of Spark that the container stands in, found by what the status says."""
        (where,) = (each["where"] for each in self.status()["containers"] if each["container_id"] == container_id)
        found = re.fullmatch(r"executor (\d+) on \S+", where)
        assert found, where
        jvm = self.python_worker(container_id).parents()[1]
        words = jvm.cmdline()
        assert words[words.index("--executor-id") + 1] == found[1]
        return jvm

    def granted(self, container_id: int) -> tuple[int, int]:
        """Cores and MiB of heap of the Spark executor that the container stands in."""
        words = self.spark_executor(container_id).cmdline()
        (heap,) = (each for each in words if each.startswith("-Xmx"))
        return int(words[words.index("--cores") + 1]), int(heap.removeprefix("-Xmx").removesuffix("M"))

    def worker(self, container_id: int) -> SparkWorker:
        """The worker that the container's Spark executor is of."""
        pid = self.spark_executor(container_id).ppid()
        return next(each for each in self.cluster.workers if each.process.pid == pid)

    def containers_of(self, worker: SparkWorker) -> set[int]:
        """Those that stand in executors of a worker."""
        return {each for each in range(3) if self.worker(each) is worker}

    def is_over(self) -> bool:
        """Whether it is listed as finished and nothing of it is left; what has ended is tidied up by any list."""
        return "finished" in self.sandbox.say("list", "cluster") and not self.sandbox.leftovers()

    def let_go(self) -> None:
        """Lets it end, and checks that every word of every line has arrived."""
        self.lines.let_go()
        wait_until(self.is_over, _OVER_S, "it has ended and left nothing")
        self.lines.check()
