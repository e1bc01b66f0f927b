"""The scheduler driver ``nomad``: runs the containers of a topology as groups of a job."""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import partial
from typing import ClassVar, Self

from heron.spi.options import decode_options
from heron_scheduler_kit.managed.managed_scheduler import ManagedScheduler
from heron_scheduler_nomad.nomad_access import find_access
from heron_scheduler_nomad.nomad_api import NomadApi
from heron_scheduler_nomad.nomad_cluster import NomadCluster
from heron_scheduler_nomad.options import NomadOptions

__all__ = ["NomadScheduler"]


class NomadScheduler(ManagedScheduler):
    """Runs each topology as one job, which Nomad keeps alive."""

    spi_version: ClassVar[int] = 1
    capabilities: ClassVar[frozenset[str]] = frozenset({"avoid", "output", "restart", "server", "shared", "update"})
    options_type: ClassVar[type] = NomadOptions

    @classmethod
    def open(cls, options: Mapping[str, object]) -> Self:
        decoded = decode_options(options, NomadOptions, "scheduler")
        return cls(decoded, NomadCluster(NomadApi(partial(find_access, decoded, os.environ)), decoded))
