"""A checked change of parallelism: the first step of every packing's `repack`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from heron.api.definition import TopologyDefinition
from heron.errors import PackingError, known, nearest
from heron.planner.packing_plan import PackingPlan, check_packing

__all__ = ["PlanChange", "check_parallelism", "read_change"]


@dataclass(frozen=True, slots=True)
class PlanChange:
    """The number of instances of each component before and after; false if nothing changes."""

    before: Mapping[str, int]
    after: Mapping[str, int]

    def __bool__(self) -> bool:
        return self.before != self.after

    def additions(self, components: Sequence[str]) -> list[tuple[str, int]]:
        """The new instances as (component, component index), in the order of `components`."""
        return [(name, index) for name in components for index in range(self.before[name], self.after[name])]


def read_change(current: PackingPlan, topology: TopologyDefinition, parallelism: Mapping[str, int]) -> PlanChange:
    """The change from `current` to a new parallelism; components that `parallelism` omits do not change.

    Raises:
        PackingError: when `current` is not a plan of this topology or breaks the rules of `check_packing`; when a
            component is unknown; when a parallelism is not an integer of 1 or more.
    """
    before = current.parallelism()
    components = {component.name for component in topology.components}
    if before.keys() != components:
        msg = (
            f"packing plan {current.id!r} has the components {known(before)}, topology {topology.name!r} has "
            f"{known(components)}; pack the topology again"
        )
        raise PackingError(msg)
    check_packing(current, before)
    for component, count in parallelism.items():
        if component not in before:
            msg = f"there is no component {component!r}{nearest(component, before)}; known: {known(before)}"
            raise PackingError(msg)
        _check_count(component, count)
    return PlanChange(before, {**before, **parallelism})


def check_parallelism(topology: TopologyDefinition) -> int:
    """The number of instances of the topology; every packing's `pack` calls this first.

    Raises:
        PackingError: when the topology has no components, or a component's parallelism is not an integer of 1 or more.
    """
    if not topology.components:
        msg = f"topology {topology.name!r} has no components, so there is nothing to pack; add a spout"
        raise PackingError(msg)
    for component in topology.components:
        _check_count(component.name, component.parallelism)
    return sum(component.parallelism for component in topology.components)


def _check_count(component: str, count: object) -> None:
    if type(count) is not int or count < 1:
        msg = f"component {component!r}: parallelism {count!r} is not an integer of 1 or more; raise it"
        raise PackingError(msg)
