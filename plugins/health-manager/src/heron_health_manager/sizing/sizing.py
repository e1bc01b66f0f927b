"""The parallelism that a topology needs, for all components at once. Pure. Source: DS2 (Kalavri et al., OSDI 2018).

The load of a component follows from the target rates of the sources and from the selectivities on the way. Its tasks
can do their true rate: tuples per second of useful time. So one pass in the order of the data gives every parallelism;
no component has to be scaled before the need of the next one is seen.

Beyond DS2: tuples that every task gets (an ALL grouping), or one of them (LOWEST), take a part of a task's capacity; a
task owns whole key groups, so with few groups one task has more than its share; and bounds are respected.
If a component stays too small because of a bound, the sources that feed it can only have a share of their targets.
Then the other components are sized for that share, not for load that never arrives.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from heron.spi.health_values import ComponentShape, TopologyShape

__all__ = ["ComponentRates", "Need", "Sizing", "Utilisation", "size"]

_EXACT = 1e-9  # relative: 10.000000001 tasks are 10


@dataclass(frozen=True, slots=True)
class ComponentRates:
    """What was measured of a component.

    `true_rate` is that of one task, in tuples/s: executed tuples of a bolt, emitted tuples of a spout. `ratios` are the
    tuples emitted on each stream for each of these tuples. `scales`: a spout that more tasks make faster.
    """

    true_rate: float
    ratios: Mapping[str, float] = field(default_factory=dict)
    scales: bool = True


@dataclass(frozen=True, slots=True)
class Utilisation:
    """The share of its time that a task shall be useful.

    A component above `most` gets as many tasks as bring it to `wanted` or below, and one that can do with fewer tasks
    at `wanted` gets fewer. Between the two nothing changes, so noise causes no changes back and forth.
    """

    wanted: float = 0.85
    most: float = 0.97

    def __post_init__(self) -> None:
        """Check the range."""
        if not 0 < self.wanted <= self.most <= 1:
            msg = f"utilisation: wanted {self.wanted} and most {self.most} are not 0 < wanted <= most <= 1"
            raise ValueError(msg)


@dataclass(frozen=True, slots=True)
class Need:
    """What one component needs.

    `load` is in tuples/s for all of its tasks, and `needed` the number of tasks for it. `used` is the share of the
    present tasks' time that this load takes; above 1 they cannot do it. `limit` says why `needed` is not enough for the
    sources' targets; "" if it is.
    """

    component: str
    parallelism: int
    needed: int
    load: float
    used: float
    limit: str = ""


@dataclass(frozen=True, slots=True)
class Sizing:
    """The needs of all components that are known, in the order of the data.

    `unknown` has a reason for each component that cannot be sized. `served` is the share of each source's target that
    the needed parallelism can do: below 1 only where a need has a limit.
    """

    needs: tuple[Need, ...]
    unknown: Mapping[str, str]
    served: Mapping[str, float]

    def changes(self) -> dict[str, int]:
        """The new number of tasks of each component that needs another one."""
        return {each.component: each.needed for each in self.needs if each.needed != each.parallelism}

    def need(self, component: str) -> Need | None:
        """The need of a component, or None if it is unknown."""
        return next((each for each in self.needs if each.component == component), None)


def size(
    shape: TopologyShape,
    rates: Mapping[str, ComponentRates],
    targets: Mapping[str, float],
    utilisation: Utilisation,
) -> Sizing:
    """The parallelism for these targets, which are tuples/s of each spout.

    A component without rates, or behind one without rates, is unknown and keeps its tasks.
    """
    first = _Flow(shape, rates, utilisation)
    first.run(targets)
    if not first.shortages:
        return first.sizing(dict.fromkeys(targets, 1.0), first.needs)
    served = dict.fromkeys(targets, 1.0)
    for component, share in first.shortages.items():
        for source in _sources_of(shape, component) & served.keys():
            served[source] = min(served[source], share)
    second = _Flow(shape, rates, utilisation)
    second.run({source: target * served[source] for source, target in targets.items()})
    limits = {each.component: each.limit for each in first.needs}
    return second.sizing(served, [replace(each, limit=limits.get(each.component, "")) for each in second.needs])


class _Flow:
    """One pass in the order of the data."""

    def __init__(self, shape: TopologyShape, rates: Mapping[str, ComponentRates], utilisation: Utilisation) -> None:
        self._shape, self._rates, self._utilisation = shape, rates, utilisation
        self._out: dict[tuple[str, str], float] = {}  # tuples/s by component and stream
        self.needs: list[Need] = []
        self.unknown: dict[str, str] = {}
        self.shortages: dict[str, float] = {}

    def run(self, targets: Mapping[str, float]) -> None:
        for component in self._shape.components:
            rates = self._rates.get(component.name)
            if reason := self._reason(component, rates, targets):
                self.unknown[component.name] = reason
            elif rates is not None:
                self._size(component, rates, targets)

    def sizing(self, served: dict[str, float], needs: list[Need]) -> Sizing:
        return Sizing(tuple(needs), self.unknown, served)

    def _reason(self, component: ComponentShape, rates: ComponentRates | None, targets: Mapping[str, float]) -> str:
        if not component.inputs and component.name not in targets:
            return "the rate of its source is not known"
        behind = [each.component for each in component.inputs if each.component in self.unknown]
        if behind:
            return f"{behind[0]} is not known, which it reads from"
        if rates is None or rates.true_rate <= 0:
            return "it has executed no tuples" if component.inputs else "it has emitted no tuples"
        return ""

    def _size(self, component: ComponentShape, rates: ComponentRates, targets: Mapping[str, float]) -> None:
        divided, whole, lowest = targets.get(component.name, 0.0), 0.0, 0.0
        for each in component.inputs:
            flow = self._out.get((each.component, each.stream), 0.0)
            if each.divides:
                divided += flow
            elif each.lowest:
                lowest += flow
            else:
                whole += flow
        capacity = _Capacity(component, rates, divided, whole, lowest)
        needed, limit = capacity.needed(self._utilisation)
        if limit:
            self.shortages[component.name] = min(1.0, 1.0 / capacity.used(needed))
        load = divided + whole * needed + lowest
        self.needs.append(
            Need(component.name, component.parallelism, needed, load, capacity.used(component.parallelism), limit)
        )
        for stream, ratio in rates.ratios.items():
            self._out[component.name, stream] = load * ratio


@dataclass(frozen=True, slots=True)
class _Capacity:
    """A component and its load: tuples/s that its tasks divide, that each of them gets, and that the first one gets."""

    component: ComponentShape
    rates: ComponentRates
    divided: float
    whole: float
    lowest: float

    def used(self, tasks: int) -> float:
        """The share of its time that the load takes from the task that has most of it."""
        groups = self.component.groups
        most = 1.0 / tasks if groups is None else math.ceil(groups / tasks) / groups
        return (self.divided * most + self.whole + self.lowest) / self.rates.true_rate

    def needed(self, utilisation: Utilisation) -> tuple[int, str]:
        """The number of tasks, and why it is not enough; "" if it is."""
        now, least, most = self.component.parallelism, self.component.least, self.component.most
        if not self._scales():
            if self.used(now) > 1 + _EXACT and self.component.inputs:
                who = "one task" if self.lowest > self.whole else "each task"
                return now, f"more tasks do not help: {who} gets every tuple"
            return now, ""
        enough = self._enough(utilisation)
        wanted = enough if self.used(now) > utilisation.most or enough < now else now
        bounded = max(least, min(wanted, most if most is not None else wanted))
        if self.used(bounded) > 1 + _EXACT:
            if self.whole + self.lowest >= self.rates.true_rate:
                who = "one" if self.lowest > self.whole else "each"
                return now, f"more tasks do not help: what {who} task gets is more than it can do"
            return bounded, f"{_whole(wanted)} tasks are needed, and at most {bounded} are possible"
        return bounded, ""

    def _enough(self, utilisation: Utilisation) -> int:
        """The smallest number of tasks whose utilisation is as wanted; where that cannot be, as near as it can."""
        for share in (utilisation.wanted, utilisation.most, 1.0):
            room = self.rates.true_rate * share - self.whole - self.lowest
            if room > 0:
                enough = max(1, math.ceil(min(self.divided / room, 1e9) * (1 - _EXACT)))
                groups = self.component.groups
                if groups is None or enough > groups or enough == 1:
                    return enough
                return math.ceil(groups / max(1, math.floor(groups * room / self.divided * (1 + _EXACT))))
        return self.component.parallelism

    def _scales(self) -> bool:
        divides = any(each.divides for each in self.component.inputs)
        return divides if self.component.inputs else self.rates.scales


def _whole(number: int) -> str:
    return f"{number:,}"


def _sources_of(shape: TopologyShape, component: str) -> set[str]:
    """The spouts from which data reaches a component, itself included."""
    found, waiting = set(), [component]
    while waiting:
        name = waiting.pop()
        inputs = shape.component(name).inputs
        if not inputs:
            found.add(name)
        waiting.extend(each.component for each in inputs)
    return found
