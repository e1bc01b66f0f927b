"""The scheduler driver ``ecs``: runs the containers of a topology as services."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar, Self

from heron.errors import HostsNotAvoidedError
from heron.spi.options import decode_options
from heron_scheduler_ecs.ecs_cluster import EcsCluster
from heron_scheduler_ecs.options import EcsOptions
from heron_scheduler_kit.managed.managed_scheduler import ManagedScheduler

__all__ = ["EcsScheduler"]


class EcsScheduler(ManagedScheduler):
    """Runs each container as one service, which ECS keeps running."""

    spi_version: ClassVar[int] = 1
    capabilities: ClassVar[frozenset[str]] = frozenset({"avoid", "output", "restart", "server", "shared", "update"})
    options_type: ClassVar[type] = EcsOptions

    def __init__(self, options: EcsOptions, cluster: EcsCluster) -> None:
        super().__init__(options, cluster)
        self._on_ec2 = options.launch_type == "EC2"

    def avoid_hosts(self, hosts: Sequence[str]) -> None:
        if hosts and not self._on_ec2:
            msg = f"ECS cannot keep tasks of Fargate away from {', '.join(hosts)}: it shows no hosts"
            raise HostsNotAvoidedError(msg)
        super().avoid_hosts(hosts)

    @classmethod
    def open(cls, options: Mapping[str, object]) -> Self:
        decoded = decode_options(options, EcsOptions, "scheduler")
        return cls(decoded, EcsCluster(decoded))
