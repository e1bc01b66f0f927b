"""The scheduler driver ``spark``: runs each job as a Spark application."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar, Self

import msgspec
from pyspark.version import __version__

from heron.clock import monotonic_s
from heron.errors import SchedulerError, UsageError
from heron.spi.driver import DriverRef
from heron.spi.options import decode_options
from heron.spi.scheduler import ContainerSpec, Job
from heron_scheduler_kit.supervised_scheduler import SupervisedScheduler
from heron_scheduler_spark.probe import probe
from heron_scheduler_spark.settings.master import find_master, parse_master
from heron_scheduler_spark.settings.master_check import check_master, check_version
from heron_scheduler_spark.settings.network import driver_address
from heron_scheduler_spark.settings.options import SparkOptions
from heron_scheduler_spark.settings.redacted_spec import redact_spec
from heron_scheduler_spark.settings.shipped_code import check_code
from heron_scheduler_spark.settings.spark_settings import DYNAMIC, is_elastic, is_guarded
from heron_spark_kit.java import check_java

__all__ = ["SparkScheduler"]

_PROBE_S = 10.0  # two JVMs and a task take three seconds on an idle machine

_UNGUARDED = "warning: spark.authenticate is not set, so everybody who reaches its ports can run code there"

_PAGE_S = 1.0  # the page of a master answers at once, or is absent

_END_S = 2.0  # to end a trial that found no executor


class SparkScheduler(SupervisedScheduler):
    """Runs each job as a separate Spark application. The supervisor process of the job keeps its driver running."""

    spi_version: ClassVar[int] = 1
    capabilities: ClassVar[frozenset[str]] = frozenset({"attached", "restart", "update"})
    options_type: ClassVar[type] = SparkOptions
    supervisor: ClassVar[str] = "heron_scheduler_spark.supervisor"
    end_s: ClassVar[float] = 6.0  # the stop of Spark takes about one of them

    @classmethod
    def open(cls, options: Mapping[str, object]) -> Self:
        return cls(decode_options(options, SparkOptions, "scheduler"))

    def __init__(self, options: SparkOptions) -> None:
        super().__init__(options)
        self._spark = options

    def refuse(self, job: Job) -> None:
        self._check(5.0)
        self._check_secrets(job.containers)

    def update(self, topology: str, add: Sequence[ContainerSpec], remove: Sequence[int]) -> None:
        if add and not is_elastic(self._spark, parse_master(self._spark.master)):
            msg = (
                f"no container can be added to topology {topology!r}: with {DYNAMIC} false in scheduler.conf Spark "
                "gives it no more executors than at its start; remove that setting, and submit the topology again"
            )
            raise SchedulerError(msg)
        self._check_secrets(add)
        super().update(topology, add, remove)

    def check(self, timeout_s: float) -> str:
        return self.check_places((), timeout_s)

    def check_places(self, others: Sequence[DriverRef], timeout_s: float) -> str:
        """Check the master, and run a task if the time allows. A task on this machine does not check `others`."""
        start_s = monotonic_s()
        report = self._check(timeout_s)
        left_s = timeout_s - (monotonic_s() - start_s) - _END_S
        if left_s < _PROBE_S:
            return f"{report}; no task was tried, because that may take {_PROBE_S + _END_S:g} s"
        elsewhere = () if parse_master(self._spark.master).here else others
        return f"{report}; {probe(self._spark, elsewhere, left_s)}"

    def _check(self, timeout_s: float) -> str:
        master = find_master(self._spark)
        check_code("archives", self._spark.archives)
        check_code("py_files", self._spark.py_files)
        java = _java()
        check_master(master, timeout_s)
        check_version(self._spark, master, _PAGE_S)
        driver_address(self._spark, master)
        open_to_all = "" if is_guarded(self._spark, master) else f"; {_UNGUARDED}"
        return f"Spark {__version__} at {master.url}, Java {java}{open_to_all}"

    def _check_secrets(self, containers: Sequence[ContainerSpec]) -> None:
        if not parse_master(self._spark.master).here:
            for spec in containers:
                redact_spec(msgspec.to_builtins(spec))


def _java() -> int:
    try:
        return check_java()
    except UsageError as error:
        raise SchedulerError(str(error)) from error
