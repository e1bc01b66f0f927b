"""The settings of Spark that a job needs, from the profile's section. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyspark.find_spark_home import _find_spark_home

from heron.driver_kit.log import MAX_BYTES, OLDER_FILES
from heron.errors import SchedulerError
from heron_scheduler_spark.container_request import ContainerRequest, largest
from heron_scheduler_spark.driver_address import DriverAddress
from heron_scheduler_spark.flag import flag
from heron_scheduler_spark.master import Cluster, Master
from heron_scheduler_spark.options import SparkOptions

__all__ = ["DYNAMIC", "executors_asked_for", "is_elastic", "is_guarded", "master_url", "spark_settings"]

DYNAMIC = "spark.dynamicAllocation.enabled"
"""Whether executors are asked for one by one, each of the size of its container."""

_SPARE_SLOTS = 64  # for containers that are added later: the slots of a local master cannot be changed
_AUTHENTICATE = "spark.authenticate"
_JVM = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1"  # these JVMs keep processes going, and must be there soon
_OURS = {
    "spark.speculation": "two tasks of one container would run the same instances twice",
    "spark.task.maxFailures": "the scheduler itself starts containers again",
    "spark.python.worker.reuse": "a worker belongs to one container",
    "spark.master": "set scheduler.master",
    "spark.driver.host": "set scheduler.driver_host",
    "spark.driver.bindAddress": "set scheduler.driver_bind",
}


def master_url(master: Master, containers: int) -> str:
    """What Spark is told: a local master has slots for the containers and more, and each job has one try."""
    return f"local[{max(2 * containers, _SPARE_SLOTS)},1]" if master.cluster is Cluster.LOCAL else master.url


def spark_settings(
    options: SparkOptions, master: Master, topology: str, address: DriverAddress, requests: Sequence[ContainerRequest]
) -> dict[str, str]:
    """The settings, those of the profile's `conf` among them.

    Where executors can be asked for one by one (dynamic allocation), each container gets one of its own size. With
    ``spark.dynamicAllocation.enabled: false`` in `conf` all have the size of the largest.

    Raises:
        SchedulerError: when `conf` sets one that must be as it is; says why.
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
        "spark.ui.killEnabled": "false",  # its page ends jobs of whoever can open it
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
    if master.cluster is not Cluster.STANDALONE and flag(conf, _AUTHENTICATE, otherwise=True):
        # Spark makes the secret itself, and brings it to the processes that it starts. Where there are others, the
        # masters and workers of a standalone cluster, these must have it first.
        settings |= {_AUTHENTICATE: "true", "spark.network.crypto.enabled": "true"}
    if master.here:
        return {**settings, **conf}
    dynamic = flag(conf, DYNAMIC, otherwise=True)
    return {
        **settings,
        **_of_cluster(requests, dynamic=dynamic),
        **conf,
        DYNAMIC: str(dynamic).lower(),
    }


def executors_asked_for(options: SparkOptions, requests: Sequence[ContainerRequest]) -> list[ContainerRequest]:
    """What each container's executor has: its own size, or that of the largest where all are alike."""
    dynamic = flag(options.spark_conf, DYNAMIC, otherwise=True)
    return list(requests) if dynamic else [largest(requests)] * len(requests)


def is_elastic(options: SparkOptions, master: Master) -> bool:
    """Whether a container that is added to a running application can get a place."""
    return master.here or flag(options.spark_conf, DYNAMIC, otherwise=True)


def is_guarded(options: SparkOptions, master: Master) -> bool:
    """Whether Spark's own processes listen to those only who have the application's secret."""
    return flag(options.spark_conf, _AUTHENTICATE, otherwise=master.cluster is not Cluster.STANDALONE)


def _of_cluster(requests: Sequence[ContainerRequest], *, dynamic: bool) -> dict[str, str]:
    common = {
        "spark.executor.extraJavaOptions": _JVM,
        "spark.decommission.enabled": "true",
        # Of a standalone worker: there the stderr of an executor, which shows the logs of its container, has no end.
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
    for name, why in _OURS.items():
        if name in conf and not (name == "spark.speculation" and not flag(conf, name, otherwise=False)):
            msg = f"scheduler.conf: {name} cannot be set to {conf[name]!r}: {why}"
            raise SchedulerError(msg)
