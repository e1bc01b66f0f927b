"""How many containers a deal needs: the least number with which none is dealt more than it has room for.

Dealt to N containers, container i gets every N-th instance from the i-th on, so whether N is enough can be read from
the sums of such slices. The numbers are tried one after the other: N containers can be enough where N + 1 are not.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence

from heron.planner.capacity import Capacity
from heron.planner.packing_plan import CPU_ROUNDING, NO_RESOURCE, Resource

__all__ = ["fewest_containers", "shortfall"]


def fewest_containers(needs: Sequence[Resource], capacity: Capacity, at_least: int) -> int:
    """The least number, `at_least` or more, to which instances with these needs can be dealt in turn.

    Every one of them fits an empty container, so as many containers as instances are always enough.
    """
    count = max(at_least, -(-len(needs) // capacity.max_instances), _containers_for(_sum(needs), capacity))
    columns = [list(amounts) for amounts in zip(*(need.amounts() for need in needs), strict=True)]
    rooms = (capacity.room.cpu + CPU_ROUNDING, capacity.room.ram_bytes, capacity.room.disk_bytes)
    largest = [max(column) for column in columns]
    while not all(map(_suffices, columns, largest, rooms, itertools.repeat(count))):
        count += 1
    return count


def shortfall(needs: Sequence[Resource], free: Iterable[Resource], capacity: Capacity) -> int:
    """The number of containers that must be opened for these needs, at the least, where so much is free already."""
    usable = _sum(Resource(max(each.cpu, 0.0), max(each.ram_bytes, 0), max(each.disk_bytes, 0)) for each in free)
    return _containers_for(_sum(needs) - usable, capacity)


def _containers_for(total: Resource, capacity: Capacity) -> int:
    return max(
        0,
        *(
            math.ceil(amount / room - CPU_ROUNDING)
            for amount, room in zip(total.amounts(), capacity.room.amounts(), strict=True)
        ),
    )


def _suffices(amounts: Sequence[float], largest: float, room: float, containers: int) -> bool:
    if largest * -(-len(amounts) // containers) <= room:  # so it is for most resources of most topologies
        return True
    return all(sum(amounts[at::containers]) <= room for at in range(containers))


def _sum(resources: Iterable[Resource]) -> Resource:
    return sum(resources, NO_RESOURCE)
