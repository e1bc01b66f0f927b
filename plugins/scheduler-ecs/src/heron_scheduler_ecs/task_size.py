"""The processors and the memory of a task: on Fargate the next size that it has, elsewhere what is asked for. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from heron.errors import SchedulerError
from heron_scheduler_kit.managed.managed_job import ContainerRequest

__all__ = ["DISK_MB", "TaskSize", "ec2_size", "fargate_size"]

DISK_MB = 20 * 1024
"""The disk that a task on Fargate has without asking, in MiB."""

_CORE = 1024
_EC2_LEAST = 128  # CPU units of a task; ECS refuses fewer
_FARGATE: tuple[tuple[int, Sequence[int]], ...] = (
    (256, (512, 1024, 2048)),
    (512, range(1024, 4096 + 1, 1024)),
    (1024, range(2048, 8192 + 1, 1024)),
    (2048, range(4096, 16384 + 1, 1024)),
    (4096, range(8192, 30720 + 1, 1024)),
    (8192, range(16384, 61440 + 1, 4096)),
    (16384, range(32768, 122880 + 1, 8192)),
)
"""The pairs of Fargate: CPU units, and the sizes of memory that they allow, in MiB."""


@dataclass(frozen=True, slots=True)
class TaskSize:
    """CPU units (1024 are one core) and MiB of memory."""

    cpu_units: int
    memory_mb: int

    def text(self, request: ContainerRequest) -> str:
        """Return the size in words, with the request if that is less."""
        size = f"{self.cpu_units / _CORE:g} vCPU, {self.memory_mb} MiB"
        if (self.cpu_units, self.memory_mb) == (math.ceil(request.cpu * _CORE), request.memory_mb):
            return size
        return f"{size}, rounded up from {request.cpu:g} vCPU, {request.memory_mb} MiB"


def fargate_size(request: ContainerRequest) -> TaskSize:
    """Return the smallest size of Fargate that has what a container asks for.

    Raises:
        SchedulerError: when Fargate has none.
    """
    for units, memories in _FARGATE:
        if units >= request.cpu * _CORE:
            for memory in memories:
                if memory >= request.memory_mb:
                    return TaskSize(units, memory)
    units, memories = _FARGATE[-1]
    msg = (
        f"container {request.container_id} asks for {request.cpu:g} cores and {request.memory_mb} MiB, and a task on "
        f"Fargate has at most {units // _CORE} and {memories[-1]}; use more containers, or scheduler.launch_type EC2"
    )
    raise SchedulerError(msg)


def ec2_size(request: ContainerRequest) -> TaskSize:
    """Return what a container asks for, in the units of ECS."""
    return TaskSize(max(_EC2_LEAST, math.ceil(request.cpu * _CORE)), request.memory_mb)
