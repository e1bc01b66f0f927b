"""The scheduler driver ``aurora``: runs the containers of a topology as instances of a job of Aurora."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Self

from heron.spi.options import decode_options
from heron_scheduler_aurora.aurora_api import AuroraApi
from heron_scheduler_aurora.aurora_cluster import AuroraCluster
from heron_scheduler_aurora.options import AuroraOptions
from heron_scheduler_kit.managed.managed_scheduler import ManagedScheduler

__all__ = ["AuroraScheduler"]


class AuroraScheduler(ManagedScheduler):
    """Runs each topology as one job, which Aurora keeps alive."""

    spi_version: ClassVar[int] = 1
    capabilities: ClassVar[frozenset[str]] = frozenset({"avoid", "output", "restart", "server", "shared", "update"})
    options_type: ClassVar[type] = AuroraOptions

    @classmethod
    def open(cls, options: Mapping[str, object]) -> Self:
        decoded = decode_options(options, AuroraOptions, "scheduler")
        return cls(decoded, AuroraCluster(AuroraApi(decoded), decoded))
