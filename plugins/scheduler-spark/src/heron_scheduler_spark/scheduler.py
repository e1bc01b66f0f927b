"""The driver: jobs of tasks of a Spark application."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Self

from heron.kernel.job.supervised_scheduler import SupervisedScheduler
from heron.spi.options import decode_options
from heron.spi.scheduler import Job
from heron_scheduler_spark.java import check_java
from heron_scheduler_spark.master import parse_master
from heron_scheduler_spark.options import SparkOptions
from heron_scheduler_spark.reach import check_master

__all__ = ["SparkScheduler"]


class SparkScheduler(SupervisedScheduler):
    """Runs each job as a Spark application of its own, whose driver a supervisor process keeps going."""

    spi_version: ClassVar[int] = 1
    capabilities: ClassVar[frozenset[str]] = frozenset({"attached", "restart", "update"})
    options_type: ClassVar[type] = SparkOptions
    supervisor: ClassVar[str] = "heron_scheduler_spark.supervisor"
    end_s: ClassVar[float] = 6.0  # Spark's own stop is about one of them

    @classmethod
    def open(cls, options: Mapping[str, object]) -> Self:
        return cls(decode_options(options, SparkOptions, "scheduler"))

    def __init__(self, options: SparkOptions) -> None:
        super().__init__(options)
        self._spark = options

    def refuse(self, job: Job) -> None:
        del job
        self._check(5.0)

    def check(self, timeout_s: float) -> str:
        return self._check(timeout_s)

    def _check(self, timeout_s: float) -> str:
        master = parse_master(self._spark.master)
        java = check_java()
        check_master(master, timeout_s)
        return f"Spark {_spark_version()} at {master.url}, Java {java}"


def _spark_version() -> str:
    from pyspark.version import __version__  # noqa: PLC0415

    return str(__version__)
