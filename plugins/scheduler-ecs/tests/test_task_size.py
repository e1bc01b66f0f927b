"""Fargate has fixed sizes, and a person must see what a container really gets."""

from __future__ import annotations

import pytest

from heron.errors import SchedulerError
from heron_scheduler_ecs.task_size import TaskSize, ec2_size, fargate_size
from heron_scheduler_kit.managed.managed_job import ContainerRequest


@pytest.mark.parametrize(
    ("cpu", "memory_mb", "size"),
    [
        (0.25, 512, (256, 512)),
        (0.1, 513, (256, 1024)),
        (0.25, 2049, (512, 3072)),
        (0.26, 600, (512, 1024)),
        (1.1, 1152, (2048, 4096)),
        (1.0, 8193, (2048, 9216)),
        (4.1, 1000, (8192, 16384)),
        (4.0, 30721, (8192, 32768)),
        (9.0, 122880, (16384, 122880)),
    ],
)
def test_the_smallest_size_that_holds_both_is_taken(cpu: float, memory_mb: int, size: tuple[int, int]) -> None:
    """The table of Fargate: each number of CPU units has its own sizes of memory."""
    assert fargate_size(ContainerRequest(1, "1-a", cpu, memory_mb)) == TaskSize(*size)


@pytest.mark.parametrize(("cpu", "memory_mb"), [(16.1, 512), (1.0, 122881)])
def test_a_container_that_no_size_holds_is_refused_with_the_largest(cpu: float, memory_mb: int) -> None:
    """Before anything is stored, with the two remedies."""
    with pytest.raises(SchedulerError, match=r"at most 16 and 122880; use more containers, or scheduler\.launch_type"):
        fargate_size(ContainerRequest(1, "1-a", cpu, memory_mb))


def test_rounding_is_said_and_an_exact_size_is_not() -> None:
    """`heron status` shows this text beside the container."""
    asked = ContainerRequest(1, "1-a", 1.1, 1152)
    assert fargate_size(asked).text(asked) == "2 vCPU, 4096 MiB, rounded up from 1.1 vCPU, 1152 MiB"
    exact = ContainerRequest(1, "1-a", 0.5, 1024)
    assert fargate_size(exact).text(exact) == "0.5 vCPU, 1024 MiB"


def test_an_instance_of_ec2_gives_what_is_asked_for() -> None:
    """ECS refuses fewer than 128 CPU units."""
    assert ec2_size(ContainerRequest(1, "1-a", 1.1, 1152)) == TaskSize(1127, 1152)
    assert ec2_size(ContainerRequest(1, "1-a", 0.0, 384)) == TaskSize(128, 384)
