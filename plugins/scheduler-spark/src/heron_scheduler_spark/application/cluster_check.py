"""Checks whether a cluster can ever hold the containers of a job, once the application has started."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from heron.errors import SchedulerError
from heron_scheduler_spark.settings.container_request import ContainerRequest
from heron_scheduler_spark.settings.master import Cluster, Master
from heron_scheduler_spark.settings.network import check_network, is_here, listens

__all__ = ["ClusterView", "WorkerSize", "check_cluster", "check_largest", "check_size", "fits"]

_ANSWER_S = 2.0
_TRIES = 5_000  # a tenth of a second; after that the search gives up and the job is accepted
_MANY = 200  # containers; with more of them the search would take too long

Size = tuple[int, int]
"""Cores and MiB."""


@dataclass(frozen=True, slots=True)
class WorkerSize:
    """All cores and MiB of a worker, whether used or free."""

    host: str
    cores: int
    memory_mb: int


class ClusterView(Protocol):
    """What an application can find out about its cluster. None means that the cluster does not report it."""

    def workers(self, host: str, port: int) -> list[WorkerSize] | None:
        """Return the workers of the standalone master at that address; None for a standby master."""

    def largest_container(self) -> WorkerSize | None:
        """Return the largest container that YARN gives."""


def check_cluster(view: ClusterView, master: Master, requests: Sequence[ContainerRequest], listening: str) -> None:
    """Check sizes and network; `listening` is where the containers listen. Facts that are not reported are not checked.

    Raises:
        SchedulerError: when the cluster can never hold the containers; has the numbers.
    """
    if master.cluster is Cluster.YARN:
        # YARN is not asked for its nodes: if its managers are on other machines, the nodes are too.
        check_network(listening, [host for host, _ in master.addresses if not is_here(host)])
        if (most := view.largest_container()) is not None:
            check_largest(requests, most)
    for address in master.addresses if master.cluster is Cluster.STANDALONE else ():
        # One of several masters leads. Spark would wait long for a master that is away.
        if listens(address, _ANSWER_S) and (workers := view.workers(*address)) is not None:
            check_network(listening, [each.host for each in workers])
            check_size(requests, workers)
            return


def check_size(requests: Sequence[ContainerRequest], workers: Sequence[WorkerSize]) -> None:
    """Check that the containers fit into the workers if these were empty.

    Raises:
        SchedulerError: when they do not; has the numbers.
    """
    rooms = [(each.cores, each.memory_mb) for each in workers]
    if not fits([(each.cores, each.memory_mb) for each in requests], rooms):
        raise SchedulerError(_too_small(requests, workers))


def check_largest(requests: Sequence[ContainerRequest], most: WorkerSize) -> None:
    """Check that YARN, whose largest container is `most`, can give each of these.

    Raises:
        SchedulerError: when one is larger; has the numbers.
    """
    for each in requests:
        if each.cores > most.cores or each.memory_mb > most.memory_mb:
            msg = (
                f"YARN gives no container of {each.cores} cores and {each.memory_mb} MiB, which the topology needs: "
                f"at most {most.cores} cores and {most.memory_mb} MiB; give the topology fewer resources or more "
                "containers, or raise yarn.scheduler.maximum-allocation-mb and -vcores"
            )
            raise SchedulerError(msg)


def fits(sizes: Sequence[Size], rooms: Sequence[Size]) -> bool:
    """Return False only when the sizes cannot all be placed in the rooms.

    The search is exact for up to 200 sizes and 5,000 tries; beyond that it returns True.
    """
    if any(sum(each[what] for each in sizes) > sum(each[what] for each in rooms) for what in (0, 1)):
        return False
    if not all(any(room[0] >= each[0] and room[1] >= each[1] for room in rooms) for each in set(sizes)):
        return False
    if len(sizes) > _MANY:
        return True
    search = _Search(sorted(sizes, key=lambda each: each[0] * each[1], reverse=True), list(rooms))
    return search.place(0) or not search.tries


class _Search:
    """Places the sizes in order, the largest first; tries one of several equal rooms only."""

    def __init__(self, sizes: list[Size], rooms: list[Size]) -> None:
        self.tries = _TRIES
        self._sizes = sizes
        self._rooms = rooms

    def place(self, index: int) -> bool:
        """Return whether this size and all later ones find room."""
        if index == len(self._sizes):
            return True
        cores, memory = self._sizes[index]
        for room in sorted(set(self._rooms)):
            if room[0] < cores or room[1] < memory:
                continue
            if not self.tries:
                return False
            self.tries -= 1
            at = self._rooms.index(room)
            self._rooms[at] = (room[0] - cores, room[1] - memory)
            if self.place(index + 1):
                return True
            self._rooms[at] = room
        return False


def _too_small(requests: Sequence[ContainerRequest], workers: Sequence[WorkerSize]) -> str:
    cores, memory = sum(each.cores for each in requests), sum(each.memory_mb for each in requests)
    sizes = sorted({(each.cores, each.memory_mb) for each in requests}, reverse=True)
    largest = f"the largest of {sizes[0][0]} cores and {sizes[0][1]} MiB"
    has = ", ".join(f"{each.host} {each.cores} cores and {each.memory_mb} MiB" for each in workers) or "no worker"
    return (
        f"the Spark cluster is too small: the {len(requests)} containers need {cores} cores and {memory} MiB in all, "
        f"{largest}, and do not fit together; the cluster has {has}; reduce the resources of the topology, or add "
        "workers to the cluster"
    )
