"""The settings of Spark for a job, from the profile's section. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyspark.find_spark_home import _find_spark_home

from heron.driver_kit.log import MAX_BYTES, OLDER_FILES
from heron.errors import SchedulerError
from heron_scheduler_spark.settings.container_request import ContainerRequest, largest
from heron_scheduler_spark.settings.master import Cluster, Master
from heron_scheduler_spark.settings.network import DriverAddress
from heron_scheduler_spark.settings.options import SparkOptions

__all__ = ["DYNAMIC", "executor_requests", "is_elastic", "is_guarded", "master_url", "spark_settings"]

DYNAMIC = "spark.dynamicAllocation.enabled"
"""Whether Spark is asked for each executor separately, with the size of its container."""

_SPARE_SLOTS = 64  # for containers that are added later: a local master cannot get more slots
_AUTHENTICATE = "spark.authenticate"
_JVM = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1"  # these JVMs only keep processes, and should start fast
_FIXED = {
    "spark.speculation": "two tasks of one container would run the same instances twice",
    "spark.task.maxFailures": "the scheduler itself restarts containers",
    "spark.python.worker.reuse": "a worker belongs to one container",
    "spark.master": "set scheduler.master",
    "spark.driver.host": "set scheduler.driver_host",
    "spark.driver.bindAddress": "set scheduler.driver_bind",
}


def master_url(master: Master, containers: int) -> str:
    """Return the URL for Spark: a local master gets spare slots, and one try for each job."""
    return f"local[{max(2 * containers, _SPARE_SLOTS)},1]" if master.cluster is Cluster.LOCAL else master.url


def spark_settings(
    options: SparkOptions, master: Master, topology: str, address: DriverAddress, requests: Sequence[ContainerRequest]
) -> dict[str, str]:
    """Return all settings, including the profile's `conf`.

    With dynamic allocation, each container gets an executor of its size. With
    ``spark.dynamicAllocation.enabled: false`` in `conf`, all executors have the size of the largest container.

    Raises:
        SchedulerError: when `conf` sets a name that it must not set; has the reason.
    """
    conf = options.spark_conf
    _check(conf)
    settings = {
        "spark.app.name": f"heron {topology}",
        "spark.driver.host": address.host,
        "spark.driver.bindAddress": address.bind,
        "spark.driver.memory": "512m",
        "spark.driver.extraJavaOptions": _JVM,
        "spark.python.worker.reuse": "false",
        "spark.speculation": "false",
        "spark.task.maxFailures": "1",
        "spark.ui.killEnabled": "false",  # otherwise everybody who can open its page could end jobs
        "spark.ui.port": "0",
        "spark.ui.showConsoleProgress": "false",
    }
    if options.archives:
        settings["spark.archives"] = ",".join(options.archives)
    if options.py_files:
        settings["spark.submit.pyFiles"] = ",".join(options.py_files)
    if master.cluster is Cluster.YARN and not (options.python or options.archives):
        # Nodes that have this interpreter have its Spark too. Otherwise Spark would copy half a gigabyte each time.
        settings["spark.yarn.jars"] = f"local:{_find_spark_home()}/jars/*"
    if master.cluster is not Cluster.STANDALONE and _flag(conf, _AUTHENTICATE, otherwise=True):
        # Spark creates the secret and passes it to the processes that it starts. The masters and workers of a
        # standalone cluster run before, and would need the secret first.
        settings |= {_AUTHENTICATE: "true", "spark.network.crypto.enabled": "true"}
    if master.here:
        return {**settings, **conf}
    dynamic = _flag(conf, DYNAMIC, otherwise=True)
    return {
        **settings,
        **_of_cluster(requests, dynamic=dynamic),
        **conf,
        DYNAMIC: str(dynamic).lower(),
    }


def executor_requests(options: SparkOptions, requests: Sequence[ContainerRequest]) -> list[ContainerRequest]:
    """Return the size of each container's executor: that of the container, or of the largest if all are equal."""
    dynamic = _flag(options.spark_conf, DYNAMIC, otherwise=True)
    return list(requests) if dynamic else [largest(requests)] * len(requests)


def is_elastic(options: SparkOptions, master: Master) -> bool:
    """Return whether Spark can give an executor to a container that is added later."""
    return master.here or _flag(options.spark_conf, DYNAMIC, otherwise=True)


def is_guarded(options: SparkOptions, master: Master) -> bool:
    """Return whether the processes of Spark accept only peers with the application's secret."""
    return _flag(options.spark_conf, _AUTHENTICATE, otherwise=master.cluster is not Cluster.STANDALONE)


def _of_cluster(requests: Sequence[ContainerRequest], *, dynamic: bool) -> dict[str, str]:
    common = {
        "spark.executor.extraJavaOptions": _JVM,
        "spark.decommission.enabled": "true",
        # For a standalone worker: the stderr of an executor, with the logs of its container, would grow without end.
        "spark.executor.logs.rolling.strategy": "size",
        "spark.executor.logs.rolling.maxSize": str(MAX_BYTES),
        "spark.executor.logs.rolling.maxRetainedFiles": str(OLDER_FILES),
    }
    if not dynamic:
        size = largest(requests)
        overhead = {"spark.executor.memoryOverhead": f"{size.overhead_mb}m"} if size.overhead_mb else {}
        return (
            common
            | overhead
            | {
                "spark.executor.cores": str(size.cores),
                "spark.task.cpus": str(size.cores),
                "spark.cores.max": str(size.cores * len(requests)),
                "spark.executor.instances": str(len(requests)),
                "spark.executor.memory": f"{size.heap_mb}m",
            }
        )
    return common | {
        "spark.executor.cores": "1",
        "spark.dynamicAllocation.shuffleTracking.enabled": "true",
        "spark.dynamicAllocation.minExecutors": "0",
        "spark.dynamicAllocation.initialExecutors": "0",
        "spark.dynamicAllocation.schedulerBacklogTimeout": "1s",
        "spark.dynamicAllocation.executorIdleTimeout": "10s",
    }


def _check(conf: Mapping[str, str]) -> None:
    for name, why in _FIXED.items():
        if name in conf and not (name == "spark.speculation" and not _flag(conf, name, otherwise=False)):
            msg = f"scheduler.conf: {name} cannot be set to {conf[name]!r}: {why}"
            raise SchedulerError(msg)


def _flag(conf: Mapping[str, str], name: str, *, otherwise: bool) -> bool:
    """Return a setting that is true or false, in letters of any case, as Spark reads it; `otherwise` if it is not set.

    Raises:
        SchedulerError: when it is neither; Spark itself would end with a stack trace.
    """
    written = conf.get(name, str(otherwise)).strip().lower()
    if written not in {"true", "false"}:
        msg = f"scheduler.conf: {name} is {conf[name]!r}; set it to true or false"
        raise SchedulerError(msg)
    return written == "true"
