"""The minimum number of containers that have room for instances assigned in turn.

With N containers, container i gets the instances i, i + N, i + 2N, …, so the sums of these slices decide whether N is
enough. N grows by one until it is enough. A binary search would be wrong: N can be enough when N + 1 is not.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence

from heron.planner.packing_plan import CPU_ROUNDING, NO_RESOURCE, Resource
from heron_packing_kit.capacity import Capacity

__all__ = ["fewest_containers", "shortfall"]


def fewest_containers(needs: Sequence[Resource], capacity: Capacity, at_least: int) -> int:
    """Return the minimum number of containers, `at_least` or more, for these instances in turn.

    Each instance fits an empty container, so one container per instance is always enough.
    """
    count = max(at_least, -(-len(needs) // capacity.max_instances), _containers_for(_sum(needs), capacity))
    columns = [list(amounts) for amounts in zip(*(need.amounts() for need in needs), strict=True)]
    rooms = (capacity.room.cpu + CPU_ROUNDING, capacity.room.ram_bytes, capacity.room.disk_bytes)
    largest = [max(column) for column in columns]
    while not all(map(_suffices, columns, largest, rooms, itertools.repeat(count))):
        count += 1
    return count


def shortfall(needs: Sequence[Resource], free: Iterable[Resource], capacity: Capacity) -> int:
    """Return the minimum number of new containers for these needs, if `free` is left in the present containers."""
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
    if largest * -(-len(amounts) // containers) <= room:  # the usual case
        return True
    return all(sum(amounts[at::containers]) <= room for at in range(containers))


def _sum(resources: Iterable[Resource]) -> Resource:
    return sum(resources, NO_RESOURCE)
