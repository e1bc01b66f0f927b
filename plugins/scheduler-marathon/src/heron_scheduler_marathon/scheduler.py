"""The scheduler driver ``marathon``: runs the containers of a topology as apps of a group of Marathon."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import ClassVar, Self

from heron.spi.options import decode_options
from heron_scheduler_kit.managed.managed_scheduler import ManagedScheduler
from heron_scheduler_marathon.marathon_api import MarathonApi, find_access
from heron_scheduler_marathon.marathon_cluster import MarathonCluster
from heron_scheduler_marathon.options import MarathonOptions

__all__ = ["MarathonScheduler"]


class MarathonScheduler(ManagedScheduler):
    """Runs each topology as one group of apps, which Marathon keeps alive."""

    spi_version: ClassVar[int] = 1
    capabilities: ClassVar[frozenset[str]] = frozenset({"avoid", "output", "restart", "server", "shared", "update"})
    options_type: ClassVar[type] = MarathonOptions

    @classmethod
    def open(cls, options: Mapping[str, object]) -> Self:
        decoded = decode_options(options, MarathonOptions, "scheduler")
        return cls(decoded, MarathonCluster(MarathonApi(partial(find_access, decoded)), decoded))
