"""What is asked of Spark for a container: whole cores and mebibytes. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from heron.planner.packing_plan import CPU_ROUNDING, Resource

__all__ = ["ContainerRequest", "container_request", "largest"]

_MANAGER_MB = 512  # the topology manager's container stands in no plan
_MB = 1024 * 1024


@dataclass(frozen=True, slots=True)
class ContainerRequest:
    """Cores; and memory in MiB, of the container itself and of the heap of the JVM that it stands in."""

    cores: int
    container_mb: int
    heap_mb: int

    @property
    def memory_mb(self) -> int:
        return self.container_mb + self.heap_mb

    def memory(self, *, heap_only: bool) -> tuple[int, int]:
        """As heap and overhead in MiB; all as heap for a master that counts nothing else."""
        return (self.memory_mb, 0) if heap_only else (self.heap_mb, self.container_mb)


def container_request(required: Resource, heap_mb: int) -> ContainerRequest:
    """Spark knows whole cores only: what is begun counts. Disk is nothing that Spark gives."""
    cores = max(1, math.ceil(required.cpu - CPU_ROUNDING))
    return ContainerRequest(cores, math.ceil(required.ram_bytes / _MB) or _MANAGER_MB, heap_mb)


def largest(requests: Sequence[ContainerRequest]) -> ContainerRequest:
    """One that has room for any of them."""
    return ContainerRequest(
        max(each.cores for each in requests),
        max(each.container_mb for each in requests),
        max(each.heap_mb for each in requests),
    )
