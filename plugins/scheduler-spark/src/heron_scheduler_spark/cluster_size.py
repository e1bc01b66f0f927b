"""Whether a standalone cluster could ever hold the containers of a job."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from heron.errors import SchedulerError, known
from heron_scheduler_spark.container_request import ContainerRequest

__all__ = ["WorkerSize", "check_network", "check_size"]


@dataclass(frozen=True, slots=True)
class WorkerSize:
    """All that a worker has, in use or not: cores and MiB."""

    host: str
    cores: int
    memory_mb: int


def check_size(requests: Sequence[ContainerRequest], workers: Sequence[WorkerSize]) -> None:
    """Puts the containers into the workers as if these were empty, the largest first, each where it just fits.

    Raises:
        SchedulerError: when one finds no place; has the numbers.
    """
    free = [[each.cores, each.memory_mb] for each in workers]
    for request in sorted(requests, key=lambda each: (each.cores, each.memory_mb), reverse=True):
        fitting = [each for each in free if each[0] >= request.cores and each[1] >= request.memory_mb]
        if not fitting:
            raise SchedulerError(_refusal(requests, workers, request))
        tightest = min(fitting)
        tightest[0] -= request.cores
        tightest[1] -= request.memory_mb


def check_network(listening: str, workers: Sequence[WorkerSize]) -> None:
    """Whether containers on these workers could reach each other where they are told to listen.

    Raises:
        SchedulerError: when that is the loopback address, and one of them is elsewhere.
    """
    if _is_loopback(listening) and (others := [each.host for each in workers if not _is_loopback(each.host)]):
        msg = (
            f"heron.network.host: containers would listen at {listening}, which other machines do not reach, and the "
            f"cluster has {known(others)}; set it to the network interface that the workers have in common"
        )
        raise SchedulerError(msg)


def _is_loopback(host: str) -> bool:
    return host in {"", "localhost", "lo", "::1"} or host.startswith("127.")


def _refusal(requests: Sequence[ContainerRequest], workers: Sequence[WorkerSize], unplaced: ContainerRequest) -> str:
    cores, memory = sum(each.cores for each in requests), sum(each.memory_mb for each in requests)
    has = ", ".join(f"{each.host} {each.cores} cores and {each.memory_mb} MiB" for each in workers) or "no worker"
    return (
        f"the Spark cluster is too small: the {len(requests)} containers need {cores} cores and {memory} MiB in all, "
        f"one of {unplaced.cores} cores and {unplaced.memory_mb} MiB finds no place; the cluster has {has}; "
        "give the topology less, or the cluster more workers"
    )
