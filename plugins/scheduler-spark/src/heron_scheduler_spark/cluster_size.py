"""Whether a cluster could ever hold the containers of a job. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from heron.errors import SchedulerError
from heron_scheduler_spark.container_request import ContainerRequest
from heron_scheduler_spark.placement import fits

__all__ = ["WorkerSize", "check_largest", "check_size"]


@dataclass(frozen=True, slots=True)
class WorkerSize:
    """All that a worker has, in use or not: cores and MiB."""

    host: str
    cores: int
    memory_mb: int


def check_size(requests: Sequence[ContainerRequest], workers: Sequence[WorkerSize]) -> None:
    """Whether there is a way to put the containers into the workers as if these were empty.

    Raises:
        SchedulerError: when there is none; has the numbers.
    """
    rooms = [(each.cores, each.memory_mb) for each in workers]
    if not fits([(each.cores, each.memory_mb) for each in requests], rooms):
        raise SchedulerError(_refusal(requests, workers))


def check_largest(requests: Sequence[ContainerRequest], most: WorkerSize) -> None:
    """Whether YARN, where the largest container that it gives is `most`, gives each of these.

    Raises:
        SchedulerError: when one is larger; has the numbers.
    """
    for each in requests:
        if each.cores > most.cores or each.memory_mb > most.memory_mb:
            msg = (
                f"YARN gives no container of {each.cores} cores and {each.memory_mb} MiB, which the topology needs: "
                f"at most {most.cores} cores and {most.memory_mb} MiB; give the topology less or more containers, or "
                "raise yarn.scheduler.maximum-allocation-mb and -vcores"
            )
            raise SchedulerError(msg)


def _refusal(requests: Sequence[ContainerRequest], workers: Sequence[WorkerSize]) -> str:
    cores, memory = sum(each.cores for each in requests), sum(each.memory_mb for each in requests)
    sizes = sorted({(each.cores, each.memory_mb) for each in requests}, reverse=True)
    largest = f"the largest of {sizes[0][0]} cores and {sizes[0][1]} MiB"
    has = ", ".join(f"{each.host} {each.cores} cores and {each.memory_mb} MiB" for each in workers) or "no worker"
    return (
        f"the Spark cluster is too small: the {len(requests)} containers need {cores} cores and {memory} MiB in all, "
        f"{largest}, and find no place together; the cluster has {has}; give the topology less, or the cluster more "
        "workers"
    )
