"""The Spark application of a job: its context, and one Spark job for each container, each in a separate thread.

A stage has one resource profile and a fixed number of tasks, and the end of one container must not affect another.
So each container is a job. This makes restart, update and resources of single containers possible.
"""

from __future__ import annotations

import logging
import queue
import threading
from collections.abc import Callable, Mapping
from pathlib import Path

from py4j.protocol import Py4JError, Py4JJavaError
from pyspark import RDD, InheritableThread
from pyspark.resource import (
    ExecutorResourceRequests,
    ResourceProfile,
    ResourceProfileBuilder,
    TaskResourceRequests,
)

from heron.errors import SchedulerError
from heron_scheduler_spark.application.cluster_check import WorkerSize
from heron_scheduler_spark.application.cluster_view import largest_on_yarn, standalone_workers
from heron_scheduler_spark.application.spark_failure import format_failure
from heron_scheduler_spark.application.spark_jobs import JobOver
from heron_scheduler_spark.settings.container_request import ContainerRequest
from heron_scheduler_spark.settings.spark_settings import DYNAMIC
from heron_scheduler_spark.worker.container_task import run_container
from heron_scheduler_spark.worker.worker_report import report
from heron_spark_kit.spark_context import start_context

__all__ = ["Application"]

_log = logging.getLogger(__name__)


class Application:
    """Made in the main thread, where it waits for the master. Puts ends of jobs into `ended`, then calls `wake`."""

    def __init__(
        self, master: str, python: str, settings: Mapping[str, str], scratch: Path, wake: Callable[[], None]
    ) -> None:
        """`python` is the workers' interpreter; `scratch` is for files that Spark removes only after a clean end.

        Raises:
            SchedulerError: when Spark starts no application; has the reason in one line.
        """
        try:
            self._context = start_context(master, python, settings, scratch)
        except Exception as error:  # of many kinds: Py4JError, PySparkRuntimeError, OSError
            msg = f"Spark at {master} starts no application: {_reason(error)}"
            raise SchedulerError(msg) from error
        self._wake = wake
        self._has_profiles = settings.get(DYNAMIC) == "true"
        self._profiles: dict[ContainerRequest, ResourceProfile] = {}
        self._lock = threading.Lock()
        self.ended: queue.SimpleQueue[JobOver] = queue.SimpleQueue()

    @property
    def id(self) -> str:
        return str(self._context.applicationId)

    @property
    def page(self) -> str:
        """The URL of its page; "" without a page."""
        return str(self._context.uiWebUrl or "")

    def run(self, ticket: str, order: str, title: str, request: ContainerRequest | None) -> None:
        """Submit the job of one start, with the ticket as its group; with a `request`, for an executor of that size."""
        arguments = (ticket, order, title, request)
        try:
            InheritableThread(target=self._run, args=arguments, name=f"spark-job-{title}", daemon=True).start()
        except Exception as error:  # starting the thread calls the JVM, which may be gone
            self.ended.put(JobOver(ticket, _reason(error)))

    def ask_worker(self, question: str, request: ContainerRequest) -> str:
        """Run one task that returns the report of its worker. Raises SchedulerError when the task fails."""
        try:
            (answer,) = self._data(question, request).mapPartitions(report).collect()
        except Exception as error:  # as above
            raise SchedulerError(_reason(error)) from error
        return str(answer)

    def cancel(self, ticket: str) -> None:
        """End the job of that start, if it has begun; its end goes to `ended` as any other."""
        try:
            self._context.cancelJobGroup(ticket)
        except (Py4JError, OSError) as error:
            _log.warning("cannot cancel: %s", error)

    def workers(self, host: str, port: int) -> list[WorkerSize] | None:
        """Return the workers of the standalone master at that address; None for a standby or silent one."""
        return standalone_workers(self._context, host, port)

    def largest_container(self) -> WorkerSize | None:
        """Return the largest container that YARN gives; None if YARN does not report it."""
        return largest_on_yarn(self._context)

    def executor_of(self, ticket: str) -> str:
        """Return the Spark executor that runs the task of that start; "" when Spark does not report it."""
        try:
            tracker = self._context.statusTracker()
            store = self._context._jsc.sc().statusStore()
            for job in tracker.getJobIdsForGroup(ticket):
                found = tracker.getJobInfo(job)
                for stage in found.stageIds if found else ():
                    tasks = store.taskList(stage, 0, 1)
                    if tasks.size():
                        return str(tasks.apply(0).executorId())
        except (Py4JError, AttributeError, OSError) as error:
            _log.debug("Spark does not report the executor of a task: %s", error)
        return ""

    def is_leaving(self, executor: str) -> bool:
        """Return whether Spark is about to take that executor away (decommissioning)."""
        try:
            scheduler = self._context._jsc.sc().taskScheduler()
            return bool(scheduler.getExecutorDecommissionState(executor).isDefined())
        except (Py4JError, AttributeError, OSError) as error:
            _log.debug("Spark does not report whether an executor leaves: %s", error)
            return False

    def ask_again(self) -> None:
        """Make Spark look for places for the executors that it still owes.

        A standalone master looks for places only on request. If Spark loses one executor and needs another within a
        tenth of a second, their number stays the same. Spark then sends no request, and the job would wait for ever.
        """
        if not self._has_profiles:
            return  # the number of executors is fixed, and a request would change it
        try:
            self._context._jsc.sc().requestExecutors(0)
        except (Py4JError, AttributeError, OSError) as error:
            _log.debug("cannot request executors again: %s", error)

    def is_stopped(self) -> bool:
        """Return whether the application has ended by itself: its master removed it, or its JVM is gone."""
        try:
            return bool(self._context._jsc.sc().isStopped())
        except (Py4JError, AttributeError, OSError):
            return True

    def stop(self) -> None:
        """End the application with all its jobs."""
        try:
            self._context.stop()
        except (Py4JError, OSError) as error:
            _log.warning("Spark does not stop cleanly: %s", error)

    def _run(self, ticket: str, order: str, title: str, request: ContainerRequest | None) -> None:
        try:
            self._context.setJobGroup(ticket, title)
            (reason,) = self._data(order, request).mapPartitions(run_container).collect()
        except Exception as error:  # as above; without a report the container would never end
            reason = _reason(error)
        self.ended.put(JobOver(ticket, reason))
        self._wake()

    def _data(self, element: str, request: ContainerRequest | None) -> RDD[str]:
        """Return one partition with one element, which is one task."""
        data = self._context.parallelize([element], 1)
        return data.withResources(self._profile(request)) if request is not None and self._has_profiles else data

    def _profile(self, request: ContainerRequest) -> ResourceProfile:
        """Return the resource profile of a size; containers of one size share it."""
        with self._lock:
            found = self._profiles.get(request)
            if found is None:
                executor = ExecutorResourceRequests().cores(request.cores).memory(f"{request.heap_mb}m")
                if request.overhead_mb:
                    executor = executor.memoryOverhead(f"{request.overhead_mb}m")
                builder = ResourceProfileBuilder().require(executor)
                found = builder.require(TaskResourceRequests().cpus(request.cores)).build
                self._profiles[request] = found
            return found


def _reason(error: Exception) -> str:
    text = str(error)
    if isinstance(error, Py4JJavaError):
        text = str(error.java_exception.getMessage() or error.java_exception.toString())
    return format_failure(text) or f"{type(error).__name__}, without a message; see spark-driver.err in its logs"
