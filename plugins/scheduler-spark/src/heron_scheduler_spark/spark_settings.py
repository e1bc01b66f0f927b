"""The settings of Spark that a job needs, from the profile's section. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyspark.find_spark_home import _find_spark_home

from heron.errors import SchedulerError
from heron.kernel.log import MAX_BYTES, OLDER_FILES
from heron_scheduler_spark.container_request import ContainerRequest
from heron_scheduler_spark.master import Cluster, Master
from heron_scheduler_spark.options import SparkOptions

__all__ = ["master_url", "spark_settings"]

_SPARE_SLOTS = 64  # for containers that are added later: the slots of a local master cannot be changed
_JVM = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1"  # these JVMs keep processes going, and must be there soon
_OURS = {
    "spark.speculation": "two tasks of one container would run the same instances twice",
    "spark.task.maxFailures": "the scheduler itself starts containers again",
    "spark.python.worker.reuse": "a worker belongs to one container",
    "spark.master": "set scheduler.master",
}


def master_url(master: Master, containers: int) -> str:
    """What Spark is told: a local master has slots for the containers and more, and each job has one try."""
    return f"local[{max(2 * containers, _SPARE_SLOTS)},1]" if master.cluster is Cluster.LOCAL else master.url


def spark_settings(
    options: SparkOptions, master: Master, topology: str, host: str, requests: Sequence[ContainerRequest]
) -> dict[str, str]:
    """The settings, those of the profile's `conf` among them.

    Where executors can be asked for one by one (dynamic allocation), each container gets one of its own size. With
    ``spark.dynamicAllocation.enabled: false`` in `conf` all have the size of the largest.

    Raises:
        SchedulerError: when `conf` sets one that must be as it is; says why.
    """
    _check(options.conf)
    settings = {
        "spark.app.name": f"heron {topology}",
        "spark.driver.host": host,
        "spark.driver.bindAddress": host,
        "spark.driver.memory": "512m",
        "spark.driver.extraJavaOptions": _JVM,
        "spark.python.worker.reuse": "false",
        "spark.speculation": "false",
        "spark.task.maxFailures": "1",
        "spark.ui.port": "0",
        "spark.ui.showConsoleProgress": "false",
    }
    if options.archives:
        settings["spark.archives"] = ",".join(options.archives)
    if options.py_files:
        settings["spark.submit.pyFiles"] = ",".join(options.py_files)
    if master.cluster is Cluster.YARN and not (options.python or options.archives):
        # Nodes that have this interpreter have its Spark too; else half a gigabyte would be brought there each time.
        settings["spark.yarn.jars"] = f"local:{_find_spark_home()}/jars/*"
    if not master.here:
        settings |= _of_cluster(options.conf.get("spark.dynamicAllocation.enabled") != "false", requests)
    return {**settings, **options.conf}


def _of_cluster(dynamic: bool, requests: Sequence[ContainerRequest]) -> dict[str, str]:
    cores = max(each.cores for each in requests)
    memory_mb = max(each.memory_mb for each in requests)
    common = {
        "spark.executor.extraJavaOptions": _JVM,
        "spark.decommission.enabled": "true",
        # Of a standalone worker: there the stderr of an executor, which shows the logs of its container, has no end.
        "spark.executor.logs.rolling.strategy": "size",
        "spark.executor.logs.rolling.maxSize": str(MAX_BYTES),
        "spark.executor.logs.rolling.maxRetainedFiles": str(OLDER_FILES),
    }
    if not dynamic:
        return common | {
            "spark.executor.cores": str(cores),
            "spark.task.cpus": str(cores),
            "spark.cores.max": str(cores * len(requests)),
            "spark.executor.instances": str(len(requests)),
            "spark.executor.memory": f"{memory_mb}m",
        }
    return common | {
        "spark.executor.cores": "1",
        "spark.dynamicAllocation.enabled": "true",
        "spark.dynamicAllocation.shuffleTracking.enabled": "true",
        "spark.dynamicAllocation.minExecutors": "0",
        "spark.dynamicAllocation.initialExecutors": "0",
        "spark.dynamicAllocation.schedulerBacklogTimeout": "1s",
        "spark.dynamicAllocation.executorIdleTimeout": "10s",
    }


def _check(conf: Mapping[str, str]) -> None:
    for name, why in _OURS.items():
        if name in conf and not (name == "spark.speculation" and conf[name] == "false"):
            msg = f"scheduler.conf: {name} cannot be set to {conf[name]!r}: {why}"
            raise SchedulerError(msg)
