"""The Spark application of a job: its context, and one Spark job per container, each in a thread of its own.

A job per container, since a stage has one resource profile and a fixed number of tasks, and since what ends one
container must not be felt by another: that is what makes restart, update and resources of single containers possible.
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
from heron_scheduler_spark.cluster_size import WorkerSize
from heron_scheduler_spark.cluster_view import largest_on_yarn, standalone_workers
from heron_scheduler_spark.container_request import ContainerRequest
from heron_scheduler_spark.container_task import run_container
from heron_scheduler_spark.spark_context import start_context
from heron_scheduler_spark.spark_failure import spoken_failure
from heron_scheduler_spark.spark_jobs import JobOver
from heron_scheduler_spark.spark_settings import DYNAMIC
from heron_scheduler_spark.worker_report import report

__all__ = ["Application"]

_log = logging.getLogger(__name__)


class Application:
    """Made in the main thread, where it waits for the master. Ends of jobs go to `ended`, and then `wake` is called."""

    def __init__(
        self, master: str, python: str, settings: Mapping[str, str], scratch: Path, wake: Callable[[], None]
    ) -> None:
        """`python` is the workers' interpreter; in `scratch` Spark leaves files here that it removes only in order.

        Raises:
            SchedulerError: when there is no application to be had; says why in one line.
        """
        try:
            self._context = start_context(master, python, settings, scratch)
        except Exception as error:  # Spark raises what it likes: Py4JError, PySparkRuntimeError, OSError
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
        """Where Spark shows it; "" when it does not."""
        return str(self._context.uiWebUrl or "")

    def run(self, ticket: str, order: str, title: str, request: ContainerRequest | None) -> None:
        """Submits the job of one start, whose group is the ticket; with a `request` for an executor of its size."""
        arguments = (ticket, order, title, request)
        try:
            InheritableThread(target=self._run, args=arguments, name=f"spark-job-{title}", daemon=True).start()
        except Exception as error:  # it asks the JVM, which may be gone
            self.ended.put(JobOver(ticket, _reason(error)))

    def ask_worker(self, question: str, request: ContainerRequest) -> str:
        """What a worker says of itself, to one task. Raises SchedulerError when the task fails."""
        try:
            (answer,) = self._data(question, request).mapPartitions(report).collect()
        except Exception as error:  # as above
            raise SchedulerError(_reason(error)) from error
        return str(answer)

    def cancel(self, ticket: str) -> None:
        """Ends the job of that start, if it has begun; its end comes as any other."""
        try:
            self._context.cancelJobGroup(ticket)
        except (Py4JError, OSError) as error:
            _log.warning("cannot cancel: %s", error)

    def workers(self, host: str, port: int) -> list[WorkerSize] | None:
        """The workers of the standalone master at that address; None where it only stands by, or does not tell."""
        return standalone_workers(self._context, host, port)

    def largest_container(self) -> WorkerSize | None:
        """The largest that YARN gives; None where it does not tell."""
        return largest_on_yarn(self._context)

    def executor_of(self, ticket: str) -> str:
        """The Spark executor that has the task of that start; "" when Spark does not tell."""
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
            _log.debug("where a task is cannot be told: %s", error)
        return ""

    def is_leaving(self, executor: str) -> bool:
        """Whether Spark is about to take that executor away (decommissioning)."""
        try:
            scheduler = self._context._jsc.sc().taskScheduler()
            return bool(scheduler.getExecutorDecommissionState(executor).isDefined())
        except (Py4JError, AttributeError, OSError) as error:
            _log.debug("whether an executor leaves cannot be told: %s", error)
            return False

    def ask_again(self) -> None:
        """Has Spark look for places for the executors that it still owes.

        A standalone master looks when somebody asks. An executor that it takes away and one that is asked for within a
        tenth of a second are the same number to Spark, which then asks nobody: the job would wait for ever.
        """
        if not self._has_profiles:
            return  # the number is that of the start, and to ask would change it
        try:
            self._context._jsc.sc().requestExecutors(0)
        except (Py4JError, AttributeError, OSError) as error:
            _log.debug("executors cannot be asked for again: %s", error)

    def is_stopped(self) -> bool:
        """Whether the application has ended by itself: its master removed it, or its JVM is gone."""
        try:
            return bool(self._context._jsc.sc().isStopped())
        except (Py4JError, AttributeError, OSError):
            return True

    def stop(self) -> None:
        """Ends the application with everything in it."""
        try:
            self._context.stop()
        except (Py4JError, OSError) as error:
            _log.warning("Spark does not stop in order: %s", error)

    def _run(self, ticket: str, order: str, title: str, request: ContainerRequest | None) -> None:
        try:
            self._context.setJobGroup(ticket, title)
            (reason,) = self._data(order, request).mapPartitions(run_container).collect()
        except Exception as error:  # as above; a thread that ends without a word would be a container that never ends
            reason = _reason(error)
        self.ended.put(JobOver(ticket, reason))
        self._wake()

    def _data(self, element: str, request: ContainerRequest | None) -> RDD[str]:
        """One partition of one element, which is one task."""
        data = self._context.parallelize([element], 1)
        return data.withResources(self._profile(request)) if request is not None and self._has_profiles else data

    def _profile(self, request: ContainerRequest) -> ResourceProfile:
        """One per size: executors of a profile serve every container of its size."""
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
    return spoken_failure(text) or f"{type(error).__name__}, without a word; see spark-driver.err in its logs"
