"""Topologies on a standalone Spark of two workers, all parts of which are killed in turn; no line is lost."""

from __future__ import annotations

import contextlib
import re
import signal
import socket
import subprocess
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import psutil
import pytest
from shown import logs, processes
from spark_journal import BACK_S, HERE, SparkJournal, fresh, refusal

from heron_testing.pytest_plugin import wait_until
from servers.absence import not_here
from servers.spark import SparkCluster

if TYPE_CHECKING:
    from conftest import Sandbox

pytestmark = pytest.mark.timeout(400)

_GONE_S = 10.0
_CONTAINER_GONE_S = 5.0
_PLANNED = (3 + 1, (3 + 2) * 1024 + 512)  # three tasks of a core and a gigabyte, the padding, and the heap of a JVM


@pytest.fixture
def cluster(sandbox: Sandbox, spark: SparkCluster) -> SparkCluster:
    """The cluster whole and empty, and the profile ``cluster`` that names it."""
    return fresh(sandbox, spark)


Harm = Callable[[SparkJournal], set[int]]
"""Does it, and gives the containers that it ends."""


def kill_python_worker(journal: SparkJournal) -> set[int]:
    """The process that Spark runs the task in."""
    journal.python_worker(1).kill()
    return {1}


def kill_python_daemon(journal: SparkJournal) -> set[int]:
    """And the one that forked it: nobody below it is told by Spark."""
    journal.python_worker(1).parents()[0].kill()
    return {1}


def kill_executor_jvm(journal: SparkJournal) -> set[int]:
    """A Spark executor."""
    journal.spark_executor(1).kill()
    return {1}


def kill_topology_manager(journal: SparkJournal) -> set[int]:
    """The executor of container 0, whose topology manager leads."""
    journal.executor(0).kill()
    return {0}


def kill_two(journal: SparkJournal) -> set[int]:
    """Topology manager and half of the data path in one moment."""
    first, second = journal.spark_executor(0), journal.spark_executor(2)
    first.kill()
    second.kill()
    return {0, 2}


def kill_worker(journal: SparkJournal) -> set[int]:
    """A machine of the cluster, as far as Spark can tell, while there is another one."""
    journal.cluster.start()
    worker = journal.worker(1)
    harmed = journal.containers_of(worker)
    worker.process.kill()
    return harmed


def decommission_worker(journal: SparkJournal) -> set[int]:
    """It is to be taken away in order: what runs there has to leave by itself."""
    journal.cluster.start()
    worker = journal.worker(1)
    harmed = journal.containers_of(worker)
    worker.decommission()
    return harmed


def kill_driver(journal: SparkJournal) -> set[int]:
    """The application goes with it, and with that every container."""
    journal.run.the("spark driver").kill()
    return {0, 1, 2}


def restart_one(journal: SparkJournal) -> set[int]:
    """On demand, without any harm done."""
    said = journal.sandbox.say("restart", "journal", "1", *HERE)
    assert "container 1 of journal is back" in said
    return {1}


_AT_ONCE = (kill_python_worker, kill_python_daemon, kill_executor_jvm, kill_topology_manager, kill_two)
"""A process over the container, or its executor, is killed: no other machine has to find out first."""


@pytest.mark.parametrize(
    "harms",
    [
        pytest.param((kill_python_worker, kill_python_daemon, restart_one, kill_executor_jvm), id="one container"),
        pytest.param((kill_topology_manager, kill_two, decommission_worker), id="several containers"),
        pytest.param((kill_worker, kill_driver), id="cluster"),
    ],
)
def test_no_line_is_lost_whatever_dies(sandbox: Sandbox, cluster: SparkCluster, harms: tuple[Harm, ...]) -> None:
    """At least once: what died is started anew and nothing else is, and the status says so; then all is counted."""
    journal = SparkJournal(sandbox, cluster)
    for harm in harms:
        after = harm.__name__
        before = journal.attempts()
        containers = {each: journal.container(each) for each in before}
        harmed = harm(journal)
        limit_s = _CONTAINER_GONE_S if harm in _AT_ONCE else BACK_S
        _, left = psutil.wait_procs([each for one in harmed for each in containers[one]], limit_s)
        assert not left, f"{after}: {left} are left after {limit_s:g} s"
        journal.is_back(before, harmed, after)
        journal.flows(after)
    journal.let_go()


def test_two_topologies_share_a_cluster_and_show_it_no_key(sandbox: Sandbox, cluster: SparkCluster) -> None:
    """Each is an application of its own, with executors of the sizes that the packing plan gives its containers.

    Ending one is not felt by the other, and leaves nothing.
    Keys are neither on Spark's pages, nor in the environment or on the command line of any process, nor in any log.
    """
    journal = SparkJournal(sandbox, cluster)
    assert [journal.granted(each) for each in range(3)] == [(1, 1024), _PLANNED, _PLANNED]
    other = sandbox.start("steady.py", command="submit cluster")
    assert other.wait() == 0, other.spoken
    wait_until((other.out / "progress").exists, BACK_S, "tuples of the other")
    assert len(cluster.applications()) == 2
    keys = [key for name in ("journal", "steady") for key in _secret_keys(sandbox, name)]
    shown = [*_pages(journal), *processes(sandbox), *logs(sandbox, (cluster.folder, "std*"))]
    assert len(shown) > 40
    assert not [text for text in shown for key in keys if key in text]
    assert any(b"heron journal container 1 " in text for text in shown), "logs are on Spark's pages too"
    assert "stmgr-1" in sandbox.say("logs", "journal", *HERE)
    before = journal.attempts()
    executors = other.processes("executor", "steady")
    sandbox.say("kill", "steady", *HERE)
    assert len(cluster.applications()) == 1
    assert not any(each.is_running() for each in executors)
    assert journal.attempts() == before
    journal.let_go()


@pytest.mark.parametrize("instant", ["driver", "application", "task", "container"])
def test_a_topology_is_killed_in_each_phase_of_its_start(sandbox: Sandbox, cluster: SparkCluster, instant: str) -> None:
    """Also where the command that submitted it was killed first, and nobody else knows how far it had come.

    Ctrl-C has the command do it itself.
    """
    run = sandbox.start("steady.py", command="submit cluster")
    reached: dict[str, Callable[[], object]] = {
        "driver": lambda: run.processes("spark driver"),
        "application": cluster.applications,
        "task": lambda: run.processes("pyspark worker"),
        "container": lambda: run.processes("executor"),
    }
    run.until(reached[instant], instant)
    if instant == "application":
        run.process.send_signal(signal.SIGINT)
        assert run.wait(_GONE_S) == 130, run.spoken
        assert not run.processes("spark supervisor")
    else:
        run.process.kill()
        run.wait()
        sandbox.say("kill", "steady", *HERE)
    wait_until(lambda: not cluster.applications(), _GONE_S, "the application is gone")


def test_an_executor_that_never_comes_is_waited_for_and_named(sandbox: Sandbox, cluster: SparkCluster) -> None:
    """The master has promised executors, and no worker starts one: the status says it, and kill ends it."""
    for worker in cluster.workers:
        psutil.Process(worker.process.pid).suspend()
    try:
        run = sandbox.start("steady.py", "--set", "scheduler.start_s=15", command="submit cluster")
        assert run.wait() == 0, run.spoken
        assert "waits for Spark to give it an executor" in sandbox.say("status", "steady", *HERE, code=1)
        sandbox.say("kill", "steady", *HERE)
    finally:
        for worker in cluster.workers:
            psutil.Process(worker.process.pid).resume()
    wait_until(lambda: not cluster.applications(), 30.0, "the application is gone")


@pytest.mark.parametrize(
    ("setting", "said"),
    [
        ("jvm_heap_mb=60000", r"cluster is too small: the 3 containers need \d+ cores and \d+ MiB.*32768 MiB"),
        ("python=/no/such/python", r"workers cannot run /no/such/python: .*scheduler\.python"),
        ("python=/usr/bin/python3", r"(No module named|workers run Python 3\.\d+).*scheduler\.python"),
        ("master=spark://127.0.0.1:9", r"no Spark master answers .*Connection refused.*scheduler\.master"),
        ("driver_host=192.0.2.99", r"scheduler\.driver_host: '192\.0\.2\.99' is no address of this machine"),
    ],
)
def test_what_cannot_run_is_refused_in_one_line(
    sandbox: Sandbox, cluster: SparkCluster, setting: str, said: str
) -> None:
    """Within half a minute, with the numbers or the remedy, and with nothing left running."""
    assert re.search(said, refusal(sandbox, setting))
    wait_until(lambda: not cluster.applications(), _GONE_S, "no application is left")


@pytest.mark.soak
def test_a_profile_is_tried_on_a_worker(sandbox: Sandbox, cluster: SparkCluster) -> None:
    """A task there opens what its containers will; a secret that this worker lacks is named, with the worker."""
    said = sandbox.say("profiles", "check", "cluster")
    assert re.search(r"warning: spark\.authenticate is not set.*which has the use of statemgr localfs, uploader", said)
    wait_until(lambda: not cluster.applications(), _GONE_S, "no application is left")


def test_a_master_that_does_not_answer_is_named(sandbox: Sandbox, cluster: SparkCluster, silent: int) -> None:
    """Also one that takes connections; one of another major version is like that, and the message names it too."""
    line = refusal(sandbox, f"master=spark://127.0.0.1:{silent}", "start_s=8")
    assert re.search(rf"127\.0\.0\.1:{silent} gave no application within 8 s.*same major version", line), line
    assert not cluster.applications()


@pytest.fixture
def silent() -> Iterator[int]:
    """A port that takes connections, and never says a word."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield listening.getsockname()[1]


def test_a_full_work_folder_is_named(sandbox: Sandbox, cluster: SparkCluster) -> None:
    """No worker can make a folder for an executor, and the master gives up: the message says where to look."""
    with contextlib.ExitStack() as mounts:
        for worker in cluster.workers:
            mounts.enter_context(_full(worker.work))
        assert re.search(r"ended the application: .*work folder full", refusal(sandbox))
    assert not cluster.applications()


@contextlib.contextmanager
def _full(folder: Path) -> Iterator[None]:
    """A file system over the folder in which nothing can be made; takes root."""
    folder.mkdir(exist_ok=True)
    mount = ["mount", "-t", "tmpfs", "-o", "nr_inodes=1", "heron-test", str(folder)]
    done = subprocess.run(mount, capture_output=True, text=True, check=False)
    if done.returncode:
        not_here(f"no file system can be mounted here: {done.stderr.strip()}")
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


def _secret_keys(sandbox: Sandbox, topology: str) -> list[bytes]:
    found = re.findall(
        rb'"secret": ?"([^"]{40})"', (sandbox.home / ".heron" / "state" / "keys" / topology).read_bytes()
    )
    assert len(found) == 4
    return found


def _pages(journal: SparkJournal) -> Iterator[bytes]:
    page = next(each["url"] for each in journal.status()["links"] if each["title"] == "Spark UI")
    for application in journal.cluster.applications():
        for part in ("environment", "allexecutors", "jobs", "stages"):
            url = f"{page}/api/v1/applications/{application}/{part}"
            # An application that is not this page's is not found.
            with contextlib.suppress(urllib.error.HTTPError), urllib.request.urlopen(url, timeout=20) as answer:  # noqa: S310
                yield answer.read()
