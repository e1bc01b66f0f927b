"""Contract of the packing family: which instance goes into which container.

What packings have in common is there to be used, in `heron.planner`; it is pure, and all of it may be left out:

    resource_map    the topology's keys: what components ask for, sizes of containers, padding
    plan_change     the checks of `repack`, and which instances a change adds
    plan_draft      the bookkeeping: task ids, component indexes, containers that open and that become empty
    capacity        limit and padding of containers, for packings that fill them up to a limit
    fitting         the first container with room, quickly
    amounts         cores and bytes as people write them

`heron.spi.capacity_options` reads the section of a profile that goes with `capacity`.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping

from heron.api.definition import TopologyDefinition
from heron.planner.packing_plan import PackingPlan
from heron.planner.resource_map import Limits, read_resource_map
from heron.spi.driver import Driver

__all__ = ["OLDEST_SPI_VERSION", "SPI_VERSION", "Packing"]

SPI_VERSION = 1
OLDEST_SPI_VERSION = 1


class Packing(Driver):
    """Makes packing plans. Pure: no I/O, no state, and the same input gives the same plan.

    Called by commands, from the main thread; a call should take at most 2 s for 10,000 instances. A call that raises
    has changed nothing, as there is nothing that it could change. Source: Heron's ``IPacking`` and ``IRepacking``.
    """

    @abstractmethod
    def pack(self, topology: TopologyDefinition) -> PackingPlan:
        """A plan that places every instance of the topology exactly once.

        Container ids are 1 … N without holes; task ids are 1 … n without holes; the component indexes of a
        component are 0 … parallelism-1. A container requires at least what its instances have together, and at most
        its `limits`.

        Raises:
            PackingError: when the instances cannot fit; names the container or component, the amount, the limit and
                the unit.
            ConfigError: when a topology key that packing reads has a value it cannot use.
        """

    @abstractmethod
    def repack(self, current: PackingPlan, topology: TopologyDefinition, parallelism: Mapping[str, int]) -> PackingPlan:
        """A plan with the given *absolute* parallelism per component (those absent stay as they are).

        `topology` is as it was submitted, so its own parallelism may differ from that of `current`. With nothing to
        change the plan is `current` itself. Else the instances of a component with the highest indexes go; all others
        stay in their container, with their task id and index. New instances get the next task ids, which are never
        reused. A container without instances is no longer in the plan; a container with the same instances is as it
        was.

        Raises:
            PackingError: as for `pack`; also when a component is unknown, a parallelism is below 1, or `current` is
                no plan of this topology.
            ConfigError: as for `pack`.
        """

    def limits(self, topology: TopologyDefinition) -> Limits:
        """The most that a container of this topology may be, for people to see how full containers are.

        None where nothing limits a resource. Unless a driver has limits of its own: the size that the topology's keys
        ask for, else the most that they allow.

        Raises:
            PackingError, ConfigError: as for `pack`.
        """
        return read_resource_map(topology).limits()
