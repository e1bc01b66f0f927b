"""The scheduler driver ``ecs``: runs the containers of a topology as services."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Self

from heron.spi.options import decode_options
from heron_scheduler_ecs.ecs_cluster import EcsCluster
from heron_scheduler_ecs.options import EcsOptions
from heron_scheduler_kit.managed.managed_scheduler import ManagedScheduler

__all__ = ["EcsScheduler"]


class EcsScheduler(ManagedScheduler):
    """Runs each container as one service, which ECS keeps running."""

    spi_version: ClassVar[int] = 1
    capabilities: ClassVar[frozenset[str]] = frozenset({"output", "restart", "server", "shared", "update"})
    options_type: ClassVar[type] = EcsOptions

    @classmethod
    def open(cls, options: Mapping[str, object]) -> Self:
        decoded = decode_options(options, EcsOptions, "scheduler")
        return cls(decoded, EcsCluster(decoded))
