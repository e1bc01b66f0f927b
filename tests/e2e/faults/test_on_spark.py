"""Topologies on a standalone Spark with two workers, whose parts are killed in turn; no line is lost."""

from __future__ import annotations

import contextlib
import json
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

from heron_testing.waiting import wait_until
from heron_testing_servers.absence import not_here
from heron_testing_servers.spark import SparkCluster
from spark_journal import BACK_S, HERE, SUBMITTED_S, SparkJournal, fresh, refusal, status_or_empty
from tallies import check_tallies
from visible_data import logs, processes

if TYPE_CHECKING:
    from heron_testing.sandbox import Sandbox


_GONE_S = 10.0
_CONTAINER_GONE_S = 5.0
_PLANNED = (3 + 1, (3 + 2) * 1024 + 512)  # three tasks of a core and a gigabyte, the padding, and the heap of a JVM


@pytest.fixture
def cluster(sandbox: Sandbox, spark: SparkCluster) -> SparkCluster:
    """The complete, empty cluster, and the profile ``cluster`` that names it."""
    return fresh(sandbox, spark)


Harm = Callable[[SparkJournal], set[int]]
"""Inject the fault, and return the containers that it ends."""


def kill_python_worker(journal: SparkJournal) -> set[int]:
    """Kill the process that runs the task in Spark."""
    journal.python_worker(1).kill()
    return {1}


def kill_python_daemon(journal: SparkJournal) -> set[int]:
    """Kill the process that forked it; Spark informs none of its children."""
    journal.python_worker(1).parents()[0].kill()
    return {1}


def kill_executor_jvm(journal: SparkJournal) -> set[int]:
    """Kill a Spark executor."""
    journal.spark_executor(1).kill()
    return {1}


def kill_topology_manager(journal: SparkJournal) -> set[int]:
    """Kill the executor of container 0, whose topology manager leads."""
    journal.executor(0).kill()
    return {0}


def kill_two(journal: SparkJournal) -> set[int]:
    """Kill the topology manager and half of the data path at once."""
    first, second = journal.spark_executor(0), journal.spark_executor(2)
    first.kill()
    second.kill()
    return {0, 2}


def kill_worker(journal: SparkJournal) -> set[int]:
    """Kill one of two workers; for Spark that is a lost machine."""
    journal.cluster.start()
    worker = journal.worker(1)
    harmed = journal.containers_of(worker)
    worker.process.kill()
    return harmed


def decommission_worker(journal: SparkJournal) -> set[int]:
    """Remove a worker in order; its containers must leave."""
    journal.cluster.start()
    worker = journal.worker(1)
    harmed = journal.containers_of(worker)
    worker.decommission()
    return harmed


def kill_driver(journal: SparkJournal) -> set[int]:
    """Kill the driver; the application ends with it, and so does every container."""
    journal.run.the("spark driver").kill()
    return {0, 1, 2}


def restart_one(journal: SparkJournal) -> set[int]:
    """Restart a container on request, without a fault."""
    output = journal.sandbox.output_of("restart", "journal", "1", *HERE)
    assert "container 1 of journal is back" in output
    return {1}


_AT_ONCE = (kill_python_worker, kill_python_daemon, kill_executor_jvm, kill_topology_manager, kill_two)
"""Faults that kill a process above the container, or its executor: no other machine must detect them first."""


@pytest.mark.parametrize(
    "harms",
    [
        pytest.param((kill_python_worker, kill_python_daemon, restart_one, kill_executor_jvm), id="one container"),
        pytest.param((kill_topology_manager, kill_two, decommission_worker), id="several containers"),
        pytest.param((kill_worker, kill_driver), id="cluster"),
    ],
)
def test_no_line_is_lost_whatever_dies(sandbox: Sandbox, cluster: SparkCluster, harms: tuple[Harm, ...]) -> None:
    """At least once: only the lost parts restart, the status shows it, and all lines are counted."""
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


def test_two_topologies_share_a_cluster_and_no_key_is_visible(sandbox: Sandbox, cluster: SparkCluster) -> None:
    """Each is a separate application, with executors of the sizes in the packing plan.

    The end of one does not affect the other, and leaves nothing. No page of Spark, environment, command line or log
    contains a key.
    """
    journal = SparkJournal(sandbox, cluster)
    assert [journal.granted(each) for each in range(3)] == [(1, 1024), _PLANNED, _PLANNED]
    other = sandbox.start("steady.py", command="submit cluster")
    assert other.wait(SUBMITTED_S) == 0, other.all_output
    wait_until((other.out / "progress").exists, BACK_S, "tuples of the other")
    assert len(cluster.applications()) == 2
    keys = [key for name in ("journal", "steady") for key in _secret_keys(sandbox, name)]
    shown = [*_pages(journal), *processes(sandbox), *logs(sandbox, (cluster.folder, "std*"))]
    assert len(shown) > 40
    assert not [text for text in shown for key in keys if key in text]
    assert any(b"heron journal container 1 " in text for text in shown), "logs are on Spark's pages too"
    assert "stmgr-1" in sandbox.output_of("logs", "journal", *HERE)
    before = journal.attempts()
    executors = other.processes("executor", "steady")
    sandbox.output_of("kill", "steady", *HERE)
    assert len(cluster.applications()) == 1
    assert not any(each.is_running() for each in executors)
    assert journal.attempts() == before
    journal.let_go()


@pytest.mark.parametrize("instant", ["driver", "application", "task", "container"])
def test_a_topology_is_killed_in_each_phase_of_its_start(sandbox: Sandbox, cluster: SparkCluster, instant: str) -> None:
    """Also after the submitting command was killed, so that no process knows how far the start had come.

    With Ctrl-C the command itself undoes the start.
    """
    run = sandbox.start("steady.py", command="submit cluster")
    reached: dict[str, Callable[[], object]] = {
        "driver": lambda: run.processes("spark driver"),
        "application": cluster.applications,
        "task": lambda: run.processes("pyspark worker"),
        "container": lambda: run.processes("executor"),
    }
    run.until(reached[instant], instant, SUBMITTED_S)
    if instant == "application":
        run.process.send_signal(signal.SIGINT)
        assert run.wait(_GONE_S) == 130, run.all_output
        assert not run.processes("spark supervisor")
    else:
        run.process.kill()
        run.wait()
        sandbox.output_of("kill", "steady", *HERE)
    wait_until(lambda: not cluster.applications(), _GONE_S, "the application is gone")


def test_an_executor_that_never_starts_is_named(sandbox: Sandbox, cluster: SparkCluster) -> None:
    """The master has promised executors, but no worker starts one: the status shows it; kill ends the topology."""
    for worker in cluster.workers:
        psutil.Process(worker.process.pid).suspend()
    try:
        run = sandbox.start("steady.py", "--set", "scheduler.start_s=30", command="submit cluster")
        assert run.wait(SUBMITTED_S) == 0, run.all_output
        assert "waits for Spark to give it an executor" in sandbox.output_of("status", "steady", *HERE, code=1)
        sandbox.output_of("kill", "steady", *HERE)
    finally:
        for worker in cluster.workers:
            psutil.Process(worker.process.pid).resume()
    wait_until(lambda: not cluster.applications(), 30.0, "the application is gone")


@pytest.mark.parametrize(
    ("setting", "output"),
    [
        ("jvm_heap_mb=60000", r"cluster is too small: the 3 containers need \d+ cores and \d+ MiB.*32768 MiB"),
        ("python=/no/such/python", r"workers cannot run /no/such/python: .*scheduler\.python"),
        ("python=/usr/bin/python3", r"(No module named|workers run Python 3\.\d+).*scheduler\.python"),
        ("master=spark://127.0.0.1:9", r"no Spark master answers .*Connection refused.*scheduler\.master"),
        ("driver_host=192.0.2.99", r"scheduler\.driver_host: '192\.0\.2\.99' is not an address of this machine"),
    ],
)
def test_what_cannot_run_is_refused_in_one_line(
    sandbox: Sandbox, cluster: SparkCluster, setting: str, output: str
) -> None:
    """The line has the numbers or the remedy. It comes within half a minute, and no process is left."""
    assert re.search(output, refusal(sandbox, setting))
    wait_until(lambda: not cluster.applications(), _GONE_S, "no application is left")


@pytest.mark.soak
def test_profiles_check_tries_the_drivers_on_a_worker(sandbox: Sandbox, cluster: SparkCluster) -> None:
    """A task on a worker opens the drivers of its containers. A missing secret is named with the worker."""
    output = sandbox.output_of("profiles", "check", "cluster")
    assert re.search(
        r"warning: spark\.authenticate is not set.*which has the use of statemgr localfs, uploader", output
    )
    wait_until(lambda: not cluster.applications(), _GONE_S, "no application is left")


def test_a_master_that_does_not_answer_is_named(sandbox: Sandbox, cluster: SparkCluster, silent: int) -> None:
    """A master that accepts connections and stays silent may have another major version; the message says so."""
    line = refusal(sandbox, f"master=spark://127.0.0.1:{silent}", "start_s=8")
    assert re.search(rf"127\.0\.0\.1:{silent} gave no application within 8 s.*same major version", line), line
    assert not cluster.applications()


@pytest.fixture
def silent() -> Iterator[int]:
    """A port that accepts connections and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield listening.getsockname()[1]


def test_a_full_work_folder_is_named(sandbox: Sandbox, cluster: SparkCluster) -> None:
    """No worker can create a folder for an executor, and the master gives up; the message names the place to check."""
    with contextlib.ExitStack() as mounts:
        for worker in cluster.workers:
            mounts.enter_context(_full(worker.work))
        assert re.search(r"ended the application: .*work folder full", refusal(sandbox))
    assert not cluster.applications()


@contextlib.contextmanager
def _full(folder: Path) -> Iterator[None]:
    """A full file system over the folder; needs root."""
    folder.mkdir(exist_ok=True)
    mount = ["mount", "-t", "tmpfs", "-o", "nr_inodes=1", "heron-test", str(folder)]
    done = subprocess.run(mount, capture_output=True, text=True, check=False)
    if done.returncode:
        not_here(f"no file system can be mounted here: {done.stderr.strip()}")
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


def test_tasks_and_containers_come_and_go_on_the_cluster(sandbox: Sandbox, cluster: SparkCluster) -> None:
    """An update adds a Spark executor and removes it again; each number is counted once."""
    run = sandbox.start("updating.py", command="submit cluster")
    assert run.wait(SUBMITTED_S) == 0, run.all_output

    def tallied() -> int:
        components = status_or_empty(sandbox, "updating").get("status", {}).get("components", [])
        return sum(each["executed"] for each in components if each["name"] == "tally")

    def update(parallelism: str) -> dict[str, object]:
        before = tallied()
        words = ("update", "updating", "--component-parallelism", parallelism, *HERE, "--json")
        done: dict[str, object] = json.loads(sandbox.output_of(*words))
        wait_until(lambda: tallied() > before + 1000, BACK_S, f"tuples after {parallelism}")
        return done

    wait_until(lambda: tallied() > 1000, BACK_S, "tuples")
    added = update("pass:4")["added_containers"]
    assert added
    assert update("pass:1")["removed_containers"] == added
    (run.out / "stop").touch()
    # A list removes what is left, as soon as the application has ended.
    wait_until(
        lambda: "finished" in sandbox.output_of("list", "cluster") and not sandbox.remaining(), BACK_S, "the end"
    )
    assert check_tallies(run) > 0
    wait_until(lambda: not cluster.applications(), _GONE_S, "no application is left")


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
            # Spark does not find the pages of another application.
            with contextlib.suppress(urllib.error.HTTPError), urllib.request.urlopen(url, timeout=20) as answer:  # noqa: S310
                yield answer.read()
