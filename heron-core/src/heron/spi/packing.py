"""Contract of the packing family: which instance goes into which container."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping

from heron.api.definition import TopologyDefinition
from heron.planner.packing_plan import PackingPlan
from heron.spi.driver import Driver

__all__ = ["SPI_VERSION", "Packing"]

SPI_VERSION = 1


class Packing(Driver):
    """Makes packing plans. Pure: no I/O, and the same input gives the same plan.

    Called by commands, from the main thread. Source: Heron's ``IPacking`` and ``IRepacking``.
    """

    @abstractmethod
    def pack(self, topology: TopologyDefinition) -> PackingPlan:
        """A plan that places every instance of the topology exactly once.

        Container ids are 1 … N without holes; task ids are 1 … n without holes; the component indexes of a
        component are 0 … parallelism-1.

        Raises:
            PackingError: when the instances cannot fit; names the container or component, the amount and the limit.
            ConfigError: when a topology key that packing reads has a value it cannot use.
        """

    @abstractmethod
    def repack(self, current: PackingPlan, topology: TopologyDefinition, parallelism: Mapping[str, int]) -> PackingPlan:
        """A plan with the given *absolute* parallelism per component (those absent stay as they are).

        Existing instances keep their task ids, never reused; with nothing to change the plan is `current` itself.

        Raises:
            PackingError: as for `pack`; also when a component is unknown or a parallelism is below 1.
        """
