"""The division of one resource of a container.

An instance with an entry in the topology's map gets the amount of the entry. If the topology gives the size of
containers, the other instances share the rest equally, after the padding. Without a size they get the default, and the
container is as large as its instances and the padding. If the instances with an entry leave no room for the padding in
a given size, the padding is dropped, and the engine shares the container with the instances.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from heron.planner.packing_plan import CPU_ROUNDING

__all__ = ["Demand", "Rule"]


@dataclass(frozen=True, slots=True)
class Demand:
    """The demand for one resource in one container.

    `asked` is the sum of the instances with an entry in the map; `unspecified` is the number of the other instances.
    """

    asked: float = 0
    unspecified: int = 0


@dataclass(frozen=True, slots=True)
class Rule:
    """The amounts of one resource. `name` is its name in the keys, `shares` the map of the topology.

    Amounts of bytes are always ints, which avoids the rounding of floats.
    """

    name: str
    shares: Mapping[str, float]
    default: float
    least: float
    padding: float
    container: float | None
    hint: float | None

    @property
    def unit(self) -> str:
        return "cores" if self.name == "cpu" else "bytes"

    def add(self, demand: Demand, component: str) -> Demand:
        """Return the demand with one more instance of the component."""
        share = self.shares.get(component)
        if share is None:
            return Demand(demand.asked, demand.unspecified + 1)
        return Demand(demand.asked + share, demand.unspecified)

    def share(self, demand: Demand) -> float:
        """Return the amount for an instance without an entry in the map."""
        if self.container is None:
            return self.default
        if not demand.unspecified:
            return 0
        rest = self.container - demand.asked - (0 if self.is_tight(demand) else self.padding)
        return rest // demand.unspecified if self.unit == "bytes" else rest / demand.unspecified

    def total(self, demand: Demand) -> float:
        """Return the size of the container."""
        if self.container is not None:
            return self.container
        return demand.asked + demand.unspecified * self.default + self.padding

    def is_tight(self, demand: Demand) -> bool:
        """Whether a given size leaves no room for the padding beside the instances with an entry."""
        return self.container is not None and demand.asked > self.container - self.padding

    def problem(self, demand: Demand, components: Iterable[str]) -> str:
        """Return why a container cannot have this demand and these components; "" if it can."""
        for component in components:
            if self.shares.get(component, self.least) < self.least:
                return (
                    f"component {component!r} requests {self.shares[component]} {self.unit} of {self.name} per "
                    f"instance, below the minimum of {self.least} {self.unit}; raise its entry in "
                    f"topology.component.{self.name}map"
                )
        if self.container is not None and demand.asked - self.container > CPU_ROUNDING:
            return (
                f"its instances request {demand.asked} {self.unit} of {self.name}, more than "
                f"topology.container.{self.name}, {self.container} {self.unit}; raise it, lower "
                f"topology.component.{self.name}map, or use more containers"
            )
        if demand.unspecified and self.share(demand) < self.least:
            return (
                f"{demand.unspecified} instances without an entry in topology.component.{self.name}map would get "
                f"{self.share(demand)} {self.unit} of {self.name} each, below the minimum of {self.least} {self.unit}; "
                f"raise topology.container.{self.name} or use more containers"
            )
        if self.hint is not None and self.total(demand) - self.hint > CPU_ROUNDING:
            return (
                f"it needs {self.total(demand)} {self.unit} of {self.name}, more than "
                f"topology.container.max.{self.name}.hint, {self.hint} {self.unit}; raise it or use more containers"
            )
        return ""
