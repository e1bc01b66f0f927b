"""A standalone Spark that has lost a machine, and a job that has lost its supervisor."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from spark_journal import BACK_S, HERE, fresh

from heron.testing.pytest_plugin import wait_until
from heron.testing.servers.spark import SparkCluster

if TYPE_CHECKING:
    from conftest import HeronRun, Sandbox

pytestmark = pytest.mark.timeout(300)

_GONE_S = 10.0
_LARGE = "scheduler.jvm_heap_mb=10000"  # two of three such executors find room in a worker


def test_a_smaller_cluster_runs_what_finds_a_place(sandbox: Sandbox, spark: SparkCluster) -> None:
    """A driver that is started again refuses nothing: what runs was submitted when there was room for all.

    Then its supervisor is killed, and all that it had started is gone, on the workers too.
    """
    cluster = fresh(sandbox, spark)
    run = sandbox.start("steady.py", "--set", _LARGE, command="submit cluster")
    assert run.wait() == 0, run.spoken
    wait_until(lambda: len(_executors(run)) == 3, BACK_S, "all containers")
    former = _executors(run)
    cluster.workers[0].process.kill()
    run.the("spark driver").kill()
    wait_until(lambda: len(_executors(run) - former) == 2, BACK_S, "two of three containers")
    assert "waits for Spark to give it an executor" in sandbox.say("status", "steady", *HERE)
    run.the("spark supervisor").kill()
    wait_until(lambda: not _executors(run) and not cluster.applications(), _GONE_S, "nothing of it is left")
    assert "steady" in sandbox.say("kill", "steady", *HERE)


def _executors(run: HeronRun) -> set[int]:
    return {each.pid for each in run.processes("executor")}
