"""The calls of the order server into Spark: `SparkJobs` lists them, `JvmThread` makes them.

A call may take as long as the JVM pauses, so a separate thread makes it and the order server goes on.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Protocol, TypeVar

from heron.clock import monotonic_s
from heron_scheduler_spark.settings.container_request import ContainerRequest

__all__ = ["ApplicationState", "JobOver", "JvmThread", "SparkJobs", "check_application"]

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class JobOver:
    """The Spark job of a start has ended; `reason` is the result of its task, or why the job failed."""

    ticket: str
    reason: str


class SparkJobs(Protocol):
    """One Spark job for each start of a container, identified by the ticket. Ends go to `ended`."""

    ended: queue.SimpleQueue[JobOver]

    def run(self, ticket: str, order: str, title: str, request: ContainerRequest | None) -> None:
        """Submit the job of one start; with a `request`, for an executor of that size."""

    def cancel(self, ticket: str) -> None:
        """End the job, if it has begun."""

    def executor_of(self, ticket: str) -> str:
        """Return the Spark executor that runs the task; "" when Spark does not report it."""

    def is_leaving(self, executor: str) -> bool:
        """Return whether Spark is about to take that executor away."""

    def ask_again(self) -> None:
        """Make Spark look for places for the executors that it still owes."""

    def is_stopped(self) -> bool:
        """Return whether the application has ended by itself."""


@dataclass(frozen=True, slots=True)
class ApplicationState:
    """Whether the application has ended by itself, and which executors Spark takes away."""

    stopped: bool
    leaving: frozenset[str]


def check_application(
    jobs: SparkJobs, cancel: Iterable[str], executors: Iterable[str], *, owed: bool
) -> ApplicationState:
    """Cancel the jobs of those tickets, request executors again if some are `owed`, and return the state."""
    if jobs.is_stopped():
        return ApplicationState(stopped=True, leaving=frozenset())
    for ticket in cancel:
        jobs.cancel(ticket)
    if owed:
        jobs.ask_again()
    return ApplicationState(stopped=False, leaving=frozenset(filter(jobs.is_leaving, executors)))


class JvmThread:
    """Makes calls into Spark's JVM, in order. One thread submits the calls and takes their results."""

    def __init__(self, wake: Callable[[], None]) -> None:
        """`wake` is called from the other thread when `deliver` has a result."""
        self._wake = wake
        self._calls: queue.SimpleQueue[Callable[[], Callable[[], None]]] = queue.SimpleQueue()
        self._answers: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self._since_s: float | None = None
        threading.Thread(target=self._work, name="jvm-calls", daemon=True).start()

    def ask(self, call: Callable[[], T], then: Callable[[T], None] = lambda _: None) -> None:
        """Submit `call`. Later `deliver` passes its result to `then`, or raises the exception of the call."""

        def made() -> Callable[[], None]:
            try:
                return partial(then, call())
            except Exception as error:  # `deliver` raises it; otherwise the caller would wait for ever
                return partial(_fail, error)

        self._calls.put(made)

    def deliver(self) -> None:
        """Pass on the results that have come."""
        while not self._answers.empty():
            self._answers.get()()

    @property
    def silent_s(self) -> float:
        """For how long the present call has had no result, in seconds; 0 without a call."""
        since_s = self._since_s
        return 0.0 if since_s is None else monotonic_s() - since_s

    def _work(self) -> None:
        while True:
            call = self._calls.get()
            self._since_s = monotonic_s()
            answer = call()
            self._since_s = None
            self._answers.put(answer)
            self._wake()


def _fail(error: Exception) -> None:
    raise error
