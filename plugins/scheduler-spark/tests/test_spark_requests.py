"""Requests to Spark, its settings, and the errors before it starts."""

from __future__ import annotations

import subprocess
import sys

import pytest

from heron.errors import ConfigError, SchedulerError
from heron.planner.packing_plan import NO_RESOURCE, Resource
from heron.spi.driver import DriverRef
from heron.spi.options import decode_options
from heron.spi.scheduler import ContainerSpec
from heron_scheduler_spark.application.spark_failure import format_failure
from heron_scheduler_spark.scheduler import SparkScheduler
from heron_scheduler_spark.settings.container_request import ContainerRequest, container_request
from heron_scheduler_spark.settings.master import Cluster, Master, parse_master
from heron_scheduler_spark.settings.network import DriverAddress
from heron_scheduler_spark.settings.options import SparkOptions
from heron_scheduler_spark.settings.spark_settings import is_guarded, master_url, spark_settings

MB = 1024 * 1024
HERE = DriverAddress("10.0.0.1", "10.0.0.1")
SMALL = ContainerRequest(1, 512, 512)
LARGE = ContainerRequest(5, 6144, 512)


@pytest.mark.parametrize(
    ("required", "expected"),
    [
        (NO_RESOURCE, ContainerRequest(1, 512, 512)),
        (Resource(0.2, 100 * MB, 0), ContainerRequest(1, 100, 512)),
        (Resource(2.0 + 1e-12, 100 * MB + 1, 0), ContainerRequest(2, 101, 512)),
        (Resource(2.1, 1, 7), ContainerRequest(3, 1, 512)),
    ],
)
def test_cores_and_memory_are_rounded_up(required: Resource, expected: ContainerRequest) -> None:
    """Spark has whole cores only; the rounding error of a sum is not a core."""
    assert container_request(required, 512, heap_only=False) == expected
    all_heap = container_request(required, 512, heap_only=True)
    assert all_heap == ContainerRequest(expected.cores, 0, expected.memory_mb)


@pytest.mark.parametrize(
    ("written", "cluster"),
    [
        ("local", Cluster.LOCAL),
        ("local[4]", Cluster.LOCAL),
        ("spark://a:7077,b:7077", Cluster.STANDALONE),
        ("yarn", Cluster.YARN),
        ("k8s://https://h:443", Cluster.KUBERNETES),
    ],
)
def test_the_url_of_a_master_gives_the_kind_of_cluster(written: str, cluster: Cluster) -> None:
    """The settings of an application depend on it."""
    assert parse_master(written).cluster is cluster


@pytest.mark.parametrize(
    "written", ["spark://host", "spark://host:x", "local[x]", "local[0]", "mesos://h:5050", "lokal", "http://h:8080"]
)
def test_a_wrong_master_is_refused_with_the_known_forms(written: str) -> None:
    """Spark would report it in a stack trace, after some seconds."""
    with pytest.raises(SchedulerError, match=r"scheduler\.master.*spark://HOST:PORT"):
        parse_master(written)


@pytest.mark.parametrize(
    ("name", "value"), [("spark.speculation", "true"), ("spark.task.maxFailures", "4"), ("spark.master", "local")]
)
def test_settings_that_would_break_a_topology_are_refused(name: str, value: str) -> None:
    """Two tasks of one container would run each instance twice."""
    with pytest.raises(SchedulerError, match=rf"scheduler\.conf: {name}"):
        spark_settings(SparkOptions(conf={name: value}), parse_master("local"), "t", HERE, [SMALL])


def test_conf_accepts_numbers_and_booleans_of_yaml() -> None:
    """They need no quotes."""
    options = decode_options(
        {"conf": {"spark.cores.max": 4, "spark.eventLog.enabled": False}}, SparkOptions, "scheduler"
    )
    settings = spark_settings(options, parse_master("local"), "t", HERE, [SMALL])
    assert settings["spark.cores.max"] == "4"
    assert settings["spark.eventLog.enabled"] == "false"


def requests(master: Master) -> list[ContainerRequest]:
    """Return the requests to that master for a container without a size and one of five cores and 6 GiB."""
    sizes = (NO_RESOURCE, Resource(5.0, 6144 * MB, 0))
    return [container_request(each, 512, heap_only=master.counts_heap_only) for each in sizes]


def test_a_cluster_gives_each_container_an_executor_of_its_size() -> None:
    """Without dynamic allocation, all have the size of the largest container."""
    master = parse_master("spark://a:7077")
    dynamic = spark_settings(SparkOptions(), master, "t", HERE, requests(master))
    assert dynamic["spark.dynamicAllocation.enabled"] == "true"
    assert "spark.cores.max" not in dynamic
    fixed = SparkOptions(conf={"spark.dynamicAllocation.enabled": "false"})
    settings = spark_settings(fixed, master, "t", HERE, requests(master))
    wanted = {"spark.executor.cores": "5", "spark.cores.max": "10", "spark.executor.memory": "6656m"}
    assert wanted.items() <= settings.items()
    assert "spark.executor.memoryOverhead" not in settings
    assert master_url(master, 2) == "spark://a:7077"
    yarn = parse_master("yarn")
    on_yarn = spark_settings(fixed, yarn, "t", HERE, requests(yarn))
    assert (on_yarn["spark.executor.memory"], on_yarn["spark.executor.memoryOverhead"]) == ("512m", "6144m")


def test_a_setting_that_is_neither_true_nor_false_is_refused() -> None:
    """Spark itself would end with a stack trace."""
    options = SparkOptions(conf={"spark.dynamicAllocation.enabled": "no"})
    with pytest.raises(SchedulerError, match=r"spark\.dynamicAllocation\.enabled is 'no'; set it to true or false"):
        spark_settings(options, parse_master("spark://a:7077"), "t", HERE, [SMALL])


@pytest.mark.parametrize("written", ["local", "yarn", "k8s://h:443"])
def test_spark_accepts_only_peers_with_its_secret(written: str) -> None:
    """On a standalone cluster it does not: the masters and workers would need the secret first."""
    master, standalone = parse_master(written), parse_master("spark://a:7077")
    guarded = {"spark.authenticate": "true", "spark.network.crypto.enabled": "true"}
    assert guarded.items() <= spark_settings(SparkOptions(), master, "t", HERE, [SMALL]).items()
    open_to_all = SparkOptions(conf={"spark.authenticate": "false"})
    assert "spark.network.crypto.enabled" not in spark_settings(open_to_all, master, "t", HERE, [SMALL])
    assert "spark.authenticate" not in spark_settings(SparkOptions(), standalone, "t", HERE, [SMALL])
    assert is_guarded(SparkOptions(), master)
    assert not is_guarded(SparkOptions(), standalone)
    assert not is_guarded(open_to_all, master)
    assert is_guarded(SparkOptions(conf={"spark.authenticate": "True"}), standalone)


def test_a_local_master_has_slots_for_more_containers_and_one_try() -> None:
    """It cannot get more slots later, and the scheduler itself tries again."""
    assert master_url(parse_master("local[2]"), 3) == "local[64,1]"
    assert master_url(parse_master("local"), 50) == "local[100,1]"


def test_a_bad_option_is_refused_by_its_name() -> None:
    """As with every driver."""
    with pytest.raises(ConfigError, match="start_s"):
        SparkScheduler.open({"start_s": 0})


LOST = (
    "Job aborted due to stage failure: Task 0 in stage 1.0 failed 1 times, most recent failure: "
    "Lost task 0.0 in stage 1.0 (TID 1) (10.0.0.5 executor 0): "
)


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (
            f"{LOST}ExecutorLostFailure (executor 0 exited) Reason: Command exited with code 137\nDriver stacktrace:",
            "ExecutorLostFailure (executor 0 exited) Reason: Command exited with code 137 (on 10.0.0.5 executor 0)",
        ),
        (
            f"{LOST}org.apache.spark.api.python.PythonException: Traceback (most recent call last):\n  File x\n"
            "ModuleNotFoundError: No module named 'heron_scheduler_spark'\n\n\tat org.apache\nDriver stacktrace:\n",
            "the workers' Python lacks a package that the command has: ModuleNotFoundError: No module named "
            "'heron_scheduler_spark'; install heron-scheduler-spark there, set scheduler.python to an interpreter "
            "that has it, or ship one with scheduler.archives (on 10.0.0.5 executor 0)",
        ),
        (
            f'{LOST}java.io.IOException: Cannot run program "/no/python": error=2, No such file or directory\n\tat x',
            "the workers cannot run /no/python: error=2, No such file or directory; set scheduler.python to an "
            "interpreter that they have, or ship one with scheduler.archives (on 10.0.0.5 executor 0)",
        ),
        (
            f"{LOST}org.apache.spark.SparkException: \nError from python worker:\n  ls: unknown option '-m'\n\tat x",
            "org.apache.spark.SparkException: Error from python worker: ls: unknown option '-m' "
            "(on 10.0.0.5 executor 0)",
        ),
        ("Could not parse Master URL: 'x'", "Could not parse Master URL: 'x'"),
    ],
)
def test_a_failure_of_spark_becomes_one_line(text: str, line: str) -> None:
    """The status has room for one line."""
    assert format_failure(text) == line


def test_different_versions_of_python_are_named_with_the_remedy() -> None:
    """The line replaces an error of unpickling."""
    text = (
        "[PYTHON_VERSION_MISMATCH] Python in worker has different version: 3.12 than that in driver: 3.11, PySpark "
        "cannot run with different minor versions."
    )
    assert "Python 3.12 and this command 3.11; set scheduler.python" in format_failure(text)


def test_a_container_that_would_never_get_an_executor_is_not_added() -> None:
    """If the number of executors is fixed, the update would wait and then be undone without a reason."""
    options = {"master": "spark://127.0.0.1:7077", "conf": {"spark.dynamicAllocation.enabled": "false"}}
    store = DriverRef("statemgr", "none", "none", {})
    added = ContainerSpec("t", "t-1", 3, 1, "/run", "/log", "uri", store, store)
    with pytest.raises(SchedulerError, match=r"no container can be added .*spark\.dynamicAllocation\.enabled false"):
        SparkScheduler.open(options).update("t", [added], ())


def test_a_driver_that_a_user_starts_names_the_right_command() -> None:
    """`heron-spark-driver` is on the PATH."""
    command = [sys.executable, "-m", "heron_scheduler_spark.spark_driver"]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (ran.returncode, "the scheduler `spark` starts this program" in ran.stderr) == (2, True)
