"""The settings of Spark that a job needs, from the profile's section. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from heron.errors import SchedulerError
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


def spark_settings(options: SparkOptions, master: Master, topology: str, host: str) -> dict[str, str]:
    """The settings, those of the profile's `conf` among them.

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
    return {**settings, **options.conf}


def _check(conf: Mapping[str, str]) -> None:
    for name, why in _OURS.items():
        if name in conf and not (name == "spark.speculation" and conf[name] == "false"):
            msg = f"scheduler.conf: {name} cannot be set to {conf[name]!r}: {why}"
            raise SchedulerError(msg)
