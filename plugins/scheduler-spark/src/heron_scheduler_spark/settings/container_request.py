"""The request to Spark for a container: whole cores and mebibytes. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from heron.planner.packing_plan import CPU_ROUNDING, Resource

__all__ = ["ContainerRequest", "container_request", "largest"]

_MANAGER_MB = 512  # container 0, of the topology manager, has no size in the plan
_MB = 1024 * 1024


@dataclass(frozen=True, slots=True)
class ContainerRequest:
    """Cores, and memory in MiB: the heap of the container's JVM, and the memory besides that heap."""

    cores: int
    overhead_mb: int
    heap_mb: int

    @property
    def memory_mb(self) -> int:
        return self.overhead_mb + self.heap_mb


def container_request(required: Resource, jvm_heap_mb: int, *, heap_only: bool) -> ContainerRequest:
    """Return the request for these resources. Cores are rounded up, and disk is ignored: Spark has no request for it.

    With `heap_only`, all memory is requested as heap, for a master that counts nothing else.
    """
    cores = max(1, math.ceil(required.cpu - CPU_ROUNDING))
    container_mb = math.ceil(required.ram_bytes / _MB) or _MANAGER_MB
    overhead_mb = 0 if heap_only else container_mb
    return ContainerRequest(cores, overhead_mb, jvm_heap_mb + container_mb - overhead_mb)


def largest(requests: Sequence[ContainerRequest]) -> ContainerRequest:
    """Return a request that has room for any of them."""
    return ContainerRequest(
        max(each.cores for each in requests),
        max(each.overhead_mb for each in requests),
        max(each.heap_mb for each in requests),
    )
