"""The scheduler `yarn`."""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import partial
from typing import ClassVar, Self

from heron.spi.options import decode_options
from heron_scheduler_kit.managed.managed_scheduler import ManagedScheduler
from heron_scheduler_yarn.job_store import JobStore
from heron_scheduler_yarn.options import YarnOptions
from heron_scheduler_yarn.yarn_access import find_access
from heron_scheduler_yarn.yarn_api import YarnApi
from heron_scheduler_yarn.yarn_cluster import YarnCluster

__all__ = ["YarnScheduler"]


class YarnScheduler(ManagedScheduler):
    """Runs the containers of a topology as components of YARN services."""

    spi_version: ClassVar[int] = 1
    capabilities: ClassVar[frozenset[str]] = frozenset({"output", "restart", "server", "shared", "update"})
    options_type: ClassVar[type] = YarnOptions

    @classmethod
    def open(cls, options: Mapping[str, object]) -> Self:
        decoded = decode_options(options, YarnOptions, "scheduler")
        access = partial(find_access, decoded, os.environ)
        return cls(decoded, YarnCluster(YarnApi(access), JobStore(access), decoded))
