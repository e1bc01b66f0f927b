"""The driver's section of a profile."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from heron_s3_kit.place import S3Place
from heron_scheduler_kit.managed.managed_options import ManagedOptions

__all__ = ["CapacityProvider", "EcsOptions"]

_Name = Annotated[str, msgspec.Meta(min_length=1)]
_FIXED = frozenset({"awslogs-group", "awslogs-region", "awslogs-stream-prefix"})


class CapacityProvider(msgspec.Struct, frozen=True):
    """One item of a capacity provider strategy."""

    name: _Name
    weight: Annotated[int, msgspec.Meta(ge=0, le=1000)] = 1
    base: Annotated[int, msgspec.Meta(ge=0)] = 0


class EcsOptions(ManagedOptions, frozen=True, kw_only=True):
    """The cluster, the bucket of the stored jobs, and how tasks run.

    - `aws` is the access to AWS, and the bucket and prefix of the stored jobs.
    - `image` has Heron, or Python alone if `install` brings wheels.
    - `execution_role` lets ECS read launch files and write logs; `task_role` is what the containers may do.
    - `subnets`, `security_groups` and `assign_public_ip` are the network of the tasks (``awsvpc``).
    - `capacity_providers` replace the launch type in requests; `launch_type` is then that of their capacity.
    - `placement_constraints` are expressions of the cluster query language; a strategy is a type and a field.
    - `managers_apart` keeps topology managers and their standbys on different instances of EC2, as a condition.
    - `log_options` are further options of the log driver ``awslogs``.
    - `env` are variables of every container, which every reader of task definitions sees.
    """

    aws: S3Place
    cluster: _Name = "default"
    image: _Name
    execution_role: _Name
    task_role: str = ""
    user: str = ""
    architecture: Literal["X86_64", "ARM64"] = "X86_64"
    subnets: Annotated[tuple[str, ...], msgspec.Meta(min_length=1, max_length=16)]
    security_groups: Annotated[tuple[str, ...], msgspec.Meta(max_length=5)] = ()
    assign_public_ip: bool = False
    launch_type: Literal["FARGATE", "EC2"] = "FARGATE"
    capacity_providers: tuple[CapacityProvider, ...] = ()
    placement_constraints: tuple[str, ...] = ()
    placement_strategies: tuple[tuple[Literal["binpack", "random", "spread"], str], ...] = ()
    managers_apart: bool = False
    log_group: _Name = "heron"
    log_options: dict[str, str] = {}  # noqa: RUF012 - msgspec copies it for each value
    env: dict[str, str] = {}  # noqa: RUF012

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.launch_type == "EC2" and self.assign_public_ip:
            msg = "assign_public_ip is for FARGATE; on EC2 leave it out"
            raise ValueError(msg)
        placed = self.placement_constraints or self.placement_strategies or self.managers_apart
        if self.launch_type == "FARGATE" and placed:
            msg = "placement_constraints, placement_strategies and managers_apart are for EC2; remove them"
            raise ValueError(msg)
        if taken := sorted(_FIXED & self.log_options.keys()):
            msg = f"log_options: {', '.join(taken)} cannot be set, because the scheduler sets it; use log_group"
            raise ValueError(msg)
