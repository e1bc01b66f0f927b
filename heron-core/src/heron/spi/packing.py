"""Contract of the packing family, which assigns instances to containers.

`heron.planner.resource_map` reads the topology's keys: resources of components, sizes and padding of containers.
`heron.planner.amounts` reads cores and bytes as people write them. The distribution ``heron-packing-kit`` has pure
modules that packings share; a packing uses those that it needs.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping

from heron.api.definition import TopologyDefinition
from heron.errors import PackingError
from heron.planner.packing_plan import PackingPlan
from heron.planner.resource_map import Limits, read_resource_map
from heron.spi.driver import Driver

__all__ = ["OLDEST_SPI_VERSION", "SPI_VERSION", "Packing"]

SPI_VERSION = 2
OLDEST_SPI_VERSION = 2


class Packing(Driver):
    """Makes packing plans. Pure: no I/O, no state; the same input gives the same plan.

    Commands call it from the main thread. A call should take at most 2 s for 10,000 instances. Source: Heron's
    ``IPacking`` and ``IRepacking``.
    """

    @abstractmethod
    def pack(self, topology: TopologyDefinition) -> PackingPlan:
        """Return a plan that places every instance of the topology exactly once.

        Container ids are 1 … N and task ids 1 … n, without gaps; the indexes of a component are 0 … parallelism-1. The
        resources of a container are at least the sum of its instances, and at most its `limits`.

        Raises:
            PackingError: when the instances do not fit; names the container or component, the amount, the limit and the
                unit.
            ConfigError: when a key of the topology that concerns packing has an unusable value.
        """

    @abstractmethod
    def repack(self, current: PackingPlan, topology: TopologyDefinition, parallelism: Mapping[str, int]) -> PackingPlan:
        """Return a plan with the given *absolute* parallelism per component; other components keep theirs.

        `topology` is the submitted topology, so its parallelism may differ from that of `current`. Without a change the
        plan is `current` itself. A smaller parallelism removes the instances with the highest indexes; all others keep
        their container, task id and index. New instances get the ids from `PackingPlan.next_task_id` on; task ids are
        never reused, and the leader refuses a plan that reuses one. A container without instances leaves the plan; a
        container with the same instances stays equal.

        Raises:
            PackingError: as for `pack`; also when a component is unknown, a parallelism is below 1, or `current` is not
                a plan of this topology.
            ConfigError: as for `pack`.
        """

    def repack_into(
        self, current: PackingPlan, topology: TopologyDefinition, parallelism: Mapping[str, int], containers: int
    ) -> PackingPlan:
        """Return a plan as `repack`, in exactly `containers` containers, container 0 not counted.

        An instance that moves gets a new task id and keeps its index. An instance of a spout moves only if the topology
        takes checkpoints. If the number does not change, the plan is that of `repack`. The default refuses; packings
        that follow this rule call `heron_packing_kit.container_moves`. Source: Heron's
        ``IRepacking.repack(currentPackingPlan, containers, componentChanges)``.

        Raises:
            PackingError: as for `repack`; also when the number is below 1 or above the number of instances, or the
                packing decides about the number of containers itself.
            ConfigError: as for `pack`.
        """
        msg = f"{type(self).__name__} decides about the number of containers itself; leave out the container number"
        raise PackingError(msg)

    def limits(self, topology: TopologyDefinition) -> Limits:
        """Return the maximum resources of a container of this topology, so that people see how full containers are.

        None for a resource without a limit. The default is the size that the topology's keys request, else the maximum
        that they allow.

        Raises:
            PackingError, ConfigError: as for `pack`.
        """
        return read_resource_map(topology).limits()
