"""How one resource of a container is divided.

An instance whose component is in the topology's map gets exactly that. Where the topology gives the size of
containers, the other instances of a container share what is left of it after the padding; else they get the default
and the container is as large as its instances and the padding. Where the mapped instances leave no room for the
padding, it is given up, and the engine's processes share with the instances.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from heron.planner.packing_plan import CPU_ROUNDING

__all__ = ["Demand", "Rule"]


@dataclass(frozen=True, slots=True)
class Demand:
    """What the instances of one container ask of one resource: the sum of the mapped ones, the number of the rest."""

    asked: float = 0
    unspecified: int = 0


@dataclass(frozen=True, slots=True)
class Rule:
    """The sizes of one resource: its `name` in the keys, what each mapped component gets, the amounts around that.

    Amounts of bytes are ints throughout, so that no rounding of floats gets in.
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
        """The unit of every amount here."""
        return "cores" if self.name == "cpu" else "bytes"

    def add(self, demand: Demand, component: str) -> Demand:
        """The demand with one more instance of the component."""
        share = self.shares.get(component)
        if share is None:
            return Demand(demand.asked, demand.unspecified + 1)
        return Demand(demand.asked + share, demand.unspecified)

    def share(self, demand: Demand) -> float:
        """What an instance of an unmapped component gets."""
        if self.container is None:
            return self.default
        if not demand.unspecified:
            return 0
        rest = self.container - demand.asked - (0 if self.is_tight(demand) else self.padding)
        return rest // demand.unspecified if self.unit == "bytes" else rest / demand.unspecified

    def total(self, demand: Demand) -> float:
        """The size of the container."""
        if self.container is not None:
            return self.container
        return demand.asked + demand.unspecified * self.default + self.padding

    def is_tight(self, demand: Demand) -> bool:
        """Whether the mapped instances leave no room for the padding in a container of given size."""
        return self.container is not None and demand.asked > self.container - self.padding

    def problem(self, demand: Demand, components: Iterable[str]) -> str:
        """Why a container with this demand and these components cannot be; empty when it can."""
        for component in components:
            if self.shares.get(component, self.least) < self.least:
                return (
                    f"component {component!r} asks for {self.shares[component]} {self.unit} of {self.name} an "
                    f"instance, the least is {self.least} {self.unit}; raise its entry in "
                    f"topology.component.{self.name}map"
                )
        if self.container is not None and demand.asked - self.container > CPU_ROUNDING:
            return (
                f"its instances ask for {demand.asked} {self.unit} of {self.name}, topology.container.{self.name} "
                f"is {self.container} {self.unit}; raise it, lower topology.component.{self.name}map or use more "
                "containers"
            )
        if demand.unspecified and self.share(demand) < self.least:
            return (
                f"{demand.unspecified} instances without an entry in topology.component.{self.name}map would get "
                f"{self.share(demand)} {self.unit} of {self.name} each, the least is {self.least} {self.unit}; raise "
                f"topology.container.{self.name} or use more containers"
            )
        if self.hint is not None and self.total(demand) - self.hint > CPU_ROUNDING:
            return (
                f"needs {self.total(demand)} {self.unit} of {self.name}, topology.container.max.{self.name}.hint is "
                f"{self.hint} {self.unit}; raise it or use more containers"
            )
        return ""
