"""The scheduler `slurm`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Self

from heron.spi.options import decode_options
from heron_scheduler_kit.managed.managed_scheduler import ManagedScheduler
from heron_scheduler_slurm.options import SlurmOptions
from heron_scheduler_slurm.slurm_cluster import SlurmCluster

__all__ = ["SlurmScheduler"]


class SlurmScheduler(ManagedScheduler):
    """Runs each container as a batch job of Slurm."""

    spi_version: ClassVar[int] = 1
    capabilities: ClassVar[frozenset[str]] = frozenset({"avoid", "output", "restart", "server", "shared", "update"})
    options_type: ClassVar[type] = SlurmOptions

    def __init__(self, options: SlurmOptions) -> None:
        self._slurm = SlurmCluster(options)
        super().__init__(options, self._slurm)

    @classmethod
    def open(cls, options: Mapping[str, object]) -> Self:
        return cls(decode_options(options, SlurmOptions, "scheduler"))

    def restart(self, topology: str, container_id: int) -> None:
        """Do as the contract says; a container without a job gets one."""
        job = self._running(topology).job
        job.check_has([container_id])
        self._slurm.resubmit(job, container_id)
        super().restart(topology, container_id)
