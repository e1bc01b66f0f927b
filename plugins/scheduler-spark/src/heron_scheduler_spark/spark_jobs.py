"""What the driver's desk needs of a Spark application. Calls may take as long as its JVM pauses."""

from __future__ import annotations

import queue
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

from heron_scheduler_spark.container_request import ContainerRequest

__all__ = ["JobOver", "SparkJobs", "Survey", "survey"]


@dataclass(frozen=True, slots=True)
class JobOver:
    """The Spark job of a start has ended; `reason` is what its task gave, or why it failed."""

    ticket: str
    reason: str


class SparkJobs(Protocol):
    """A job for each start of a container, known by its ticket. Ends go to `ended`."""

    ended: queue.SimpleQueue[JobOver]

    def run(self, ticket: str, order: str, title: str, request: ContainerRequest | None) -> None:
        """Submits the job of one start; with a `request` for an executor of its size."""

    def cancel(self, ticket: str) -> None:
        """Ends it, if it has begun."""

    def executor_of(self, ticket: str) -> str:
        """The Spark executor that has its task; "" when Spark does not tell."""

    def is_leaving(self, executor: str) -> bool:
        """Whether Spark is about to take that executor away."""

    def ask_again(self) -> None:
        """Has Spark look for places for the executors that it still owes."""

    def is_stopped(self) -> bool:
        """Whether the application has ended by itself."""


@dataclass(frozen=True, slots=True)
class Survey:
    """Whether the application has ended by itself, and which executors Spark takes away."""

    stopped: bool
    leaving: frozenset[str]


def survey(jobs: SparkJobs, cancel: Iterable[str], executors: Iterable[str], *, owed: bool) -> Survey:
    """Cancels the jobs of those tickets, asks for what is `owed`, and looks after application and `executors`."""
    if jobs.is_stopped():
        return Survey(stopped=True, leaving=frozenset())
    for ticket in cancel:
        jobs.cancel(ticket)
    if owed:
        jobs.ask_again()
    return Survey(stopped=False, leaving=frozenset(filter(jobs.is_leaving, executors)))
