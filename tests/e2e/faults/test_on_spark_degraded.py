"""A standalone Spark that has lost a machine, and a job that has lost its supervisor."""

from __future__ import annotations

from typing import TYPE_CHECKING

from heron_testing.waiting import wait_until
from heron_testing_servers.spark import SparkCluster
from spark_journal import BACK_S, HERE, SUBMITTED_S, fresh, status_or_empty

if TYPE_CHECKING:
    from heron_testing.heron_run import HeronRun
    from heron_testing.sandbox import Sandbox


_GONE_S = 10.0
_WAITS = "waits for Spark to give it an executor"
_LARGE = "scheduler.jvm_heap_mb=12500"
"""A worker has room for container 0 and one other container, but not for both others."""


def test_a_smaller_cluster_runs_the_containers_that_fit(sandbox: Sandbox, spark: SparkCluster) -> None:
    """A restarted driver refuses nothing, because there was room for all containers at the submission.

    Then the test kills its supervisor, and all its processes end, on the workers too.
    """
    cluster = fresh(sandbox, spark)
    run = sandbox.start("steady.py", "--set", _LARGE, command="submit cluster")
    assert run.wait(SUBMITTED_S) == 0, run.all_output
    wait_until(lambda: len(_executors(run)) == 3, BACK_S, "all containers")
    former = _executors(run)
    cluster.workers[0].process.kill()
    run.the("spark driver").kill()
    wait_until(lambda: len(_executors(run) - former) == 2, BACK_S, "two of three containers")
    wait_until(lambda: _waiting(sandbox) == [_WAITS], BACK_S, "the status shows a waiting container")
    run.the("spark supervisor").kill()
    wait_until(lambda: not _executors(run) and not cluster.applications(), _GONE_S, "nothing of it is left")
    assert "steady" in sandbox.output_of("kill", "steady", *HERE)


def _waiting(sandbox: Sandbox) -> list[str]:
    containers = status_or_empty(sandbox, "steady").get("containers", [])
    texts = [each["last_error"] for each in containers if not each["running"]]
    return [text.partition(";")[0] for text in texts]


def _executors(run: HeronRun) -> set[int]:
    return {each.pid for each in run.processes("executor")}
