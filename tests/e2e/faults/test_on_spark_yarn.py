"""The topology ``journal`` on Spark on a YARN of one node, whose parts are killed in turn."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, cast

import psutil
import pyspark
import pytest

from heron_testing.sandbox import sandbox_at
from heron_testing.waiting import wait_until
from heron_testing_servers.spark import SparkCluster
from heron_testing_servers.yarn import YarnCluster
from spark_journal import BACK_S, HERE, SparkJournal, refusal

if TYPE_CHECKING:
    from heron_testing.sandbox import Sandbox

_PROFILE = """\
extends: spark
scheduler:
  master: yarn
  hadoop_conf_dir: {conf}
  start_s: 90
  stable_s: 0
  conf:
    spark.yarn.stagingDir: "file://{home}/.staging"
    spark.yarn.jars: "local:{jars}/*"  # copies of 400 MB take a minute on a busy machine
    spark.executorEnv.TMPDIR: "{tmp}"
engine: {{heron.executor.stable.s: 0}}
"""
_JARS = Path(pyspark.__file__).parent / "jars"
_GONE_S = 20.0
_MASTER = "org.apache.spark.deploy.yarn.ExecutorLauncher"


@pytest.fixture
def yarn_sandbox(request: pytest.FixtureRequest, sandbox_programs: Path, yarn: YarnCluster) -> Iterator[Sandbox]:
    """A sandbox with the home of YARN's containers, so that its end looks for them."""
    yarn.start()
    with sandbox_at(yarn.home.parent, request, sandbox_programs) as box:
        folder = box.home / ".heron" / "profiles"
        folder.mkdir(parents=True)
        profile = _PROFILE.format(conf=yarn.conf, home=box.home, tmp=box.tmp, jars=_JARS)
        (folder / "cluster.yaml").write_text(profile, encoding="utf-8")
        yield box


@pytest.fixture
def journal(yarn_sandbox: Sandbox, yarn: YarnCluster) -> SparkJournal:
    """The running topology."""
    return SparkJournal(yarn_sandbox, cast("SparkCluster", yarn))  # only workers are checked for it


def kill_executor_jvm(journal: SparkJournal, _yarn: YarnCluster) -> set[int]:
    """Kill a Spark executor, which is a container of YARN."""
    journal.spark_executor(1).kill()
    return {1}


def kill_driver(journal: SparkJournal, _yarn: YarnCluster) -> set[int]:
    """Kill the driver; the application ends with it, and so does every container."""
    journal.run.the("spark driver").kill()
    return {0, 1, 2}


def kill_application_master(journal: SparkJournal, yarn: YarnCluster) -> set[int]:
    """Kill the application master. YARN removes every container and starts the next attempt for the same driver."""
    (application,) = yarn.applications()
    (master,) = [each for each in _javas(journal.sandbox) if _MASTER in each.cmdline()]
    master.kill()
    wait_until(lambda: yarn.attempts(application) == 2, BACK_S, "YARN starts another attempt")
    return {0, 1, 2}


def restart_resource_manager(_journal: SparkJournal, yarn: YarnCluster) -> set[int]:
    """Restart the resource manager. Containers go on, and the manager reports the application when it is back."""
    before = yarn.applications()
    yarn.resource_manager.kill()
    yarn.resource_manager.start()
    wait_until(lambda: yarn.applications() == before, BACK_S, "the application is known again")
    return set()


@pytest.mark.soak
@pytest.mark.parametrize("harm", [kill_executor_jvm, kill_driver, kill_application_master, restart_resource_manager])
def test_no_line_is_lost_on_yarn(
    journal: SparkJournal, yarn: YarnCluster, harm: Callable[[SparkJournal, YarnCluster], set[int]]
) -> None:
    """At least once: only the lost parts restart; all lines are counted, and nothing is left."""
    before = journal.attempts()
    executors = {each: journal.executor(each) for each in before}
    harmed = harm(journal, yarn)
    for each in harmed:
        executors[each].wait(BACK_S)
    journal.is_back(before, harmed, harm.__name__)
    journal.flows(harm.__name__)
    journal.let_go()
    wait_until(lambda: not yarn.applications(), _GONE_S, "the application is gone")


def test_kill_leaves_nothing_on_yarn(journal: SparkJournal, yarn: YarnCluster) -> None:
    """When the command returns, no container runs; soon after, none of YARN's containers and JVMs runs either."""
    journal.sandbox.output_of("kill", "journal", *HERE)
    assert journal.run.processes("executor") == []
    wait_until(lambda: not yarn.applications(), _GONE_S, "the application is gone")
    wait_until(lambda: not _javas(journal.sandbox), _GONE_S, "its JVMs are gone")


@pytest.mark.soak
def test_a_container_too_large_for_yarn_is_refused_with_the_numbers(yarn_sandbox: Sandbox, yarn: YarnCluster) -> None:
    """YARN would never grant the request, and would not report this."""
    assert re.search(
        r"YARN gives no container of .* 60\d+ MiB.*at most \d+ cores", refusal(yarn_sandbox, "jvm_heap_mb=60000")
    )
    wait_until(lambda: not yarn.applications(), _GONE_S, "the application is gone")


def _javas(yarn_sandbox: Sandbox) -> list[psutil.Process]:
    """Return the JVMs of this sandbox: the driver's, YARN's application master and Spark's executors."""
    found = []
    for process in psutil.process_iter():
        try:
            if process.environ().get("HOME") == str(yarn_sandbox.home) and process.name() == "java":
                found.append(process)
        except psutil.Error:
            continue
    return found
