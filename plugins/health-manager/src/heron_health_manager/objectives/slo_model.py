"""From measurements to the model of a topology, by the arithmetic of DS2. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from heron.spi.health_values import Measurements, Subject, TopologyShape
from heron_health_manager.objectives.grammar import Objectives
from heron_health_manager.objectives.plan_model import PlanModel, Stage, latency_text
from heron_health_manager.sizing.provisioning import load_text, rates_of
from heron_health_manager.sizing.sizing import ComponentRates, Need, Utilisation, size

__all__ = ["Costs", "SloModel", "slo_model"]

_MOST_PATHS = 1000


@dataclass(frozen=True, slots=True)
class Costs:
    """The cost of a container and of a task, in a unit of one's choice."""

    per_container: float = 1.0
    per_task: float = 0.0


@dataclass(frozen=True, slots=True)
class SloModel:
    """The model, the present plan of its stages with its containers, and the sizing under it.

    `unmeasured` names what the objectives ask for and nobody measures. `out_of_reach` says why a component cannot serve
    the throughput with any number of tasks; "" if all can. `missed` says which objectives the present plan misses.
    """

    model: PlanModel
    present: Mapping[str, int]
    containers: int
    needs: tuple[Need, ...]
    unmeasured: tuple[str, ...] = ()
    out_of_reach: str = ""
    missed: tuple[str, ...] = ()

    @property
    def cost(self) -> float:
        """The cost of the present plan."""
        return self.model.cost(self.model.tasks(self.present), self.containers)


def slo_model(measurements: Measurements, objectives: Objectives, utilisation: Utilisation, costs: Costs) -> SloModel:
    """What the measurements show of the present plan and of others."""
    shape = measurements.shape
    rates, offered = rates_of(measurements)
    targets = {source: max(objectives.tuples_per_s, objectives.share * rate) for source, rate in offered.items()}
    wanted = Utilisation(utilisation.wanted, utilisation.wanted)
    sizing = size(shape, rates, targets, wanted)
    stages = {each.component: _stage(shape, each, rates) for each in sizing.needs}
    present = {each.component: each.parallelism for each in sizing.needs}
    paths = tuple(_paths(shape, frozenset(stages)))
    total = sum(each.parallelism for each in shape.components)
    largest = max((_tasks_in(shape, each) for each in shape.containers()), default=1)
    bare = PlanModel(stages, paths, total - sum(present.values()), largest, costs.per_container, costs.per_task)
    model = _with_overhead(bare, measurements, present)
    limits = [f"{each.component}: {each.limit}" for each in sizing.needs if each.limit]
    unmeasured = tuple(_unmeasured(measurements, objectives, sizing.unknown))
    containers = len(shape.containers())
    found = SloModel(model, present, containers, sizing.needs, unmeasured, limits[0] if limits else "")
    missed = (*_overloads(sizing.needs, utilisation), *_excesses(found, objectives))
    return replace(found, missed=missed)


def _overloads(needs: Iterable[Need], utilisation: Utilisation) -> Iterator[str]:
    """The components whose tasks cannot do their load."""
    for need in needs:
        # A spout that more tasks do not make faster may be busy all the time, and serves its source all the same.
        if need.used > utilisation.most and need.needed != need.parallelism:
            yield load_text(need)


def _excesses(found: SloModel, objectives: Objectives) -> Iterator[str]:
    """What the present plan has too much of: latency, containers, tasks, cost."""
    model, limit_s = found.model, objectives.latency_s
    if limit_s is not None and model.overhead_s is not None and model.latency_s(found.present) > limit_s:
        path, present = " -> ".join(model.slowest(found.present)), latency_text(model.latency_s(found.present))
        yield f"latency p99 is {present} on {path}; at most {latency_text(limit_s)} is wanted"
    tasks = model.tasks(found.present)
    if objectives.containers is not None and found.containers > objectives.containers:
        yield f"there are {found.containers:,} containers; at most {objectives.containers:,} are wanted"
    if objectives.tasks is not None and tasks > objectives.tasks:
        yield f"there are {tasks:,} tasks; at most {objectives.tasks:,} are wanted"
    if objectives.cost is not None and found.cost > objectives.cost:
        place = f"{tasks:,} tasks in {found.containers:,} containers"
        yield f"{place} cost {found.cost:g}; the limit is {objectives.cost:g}"


def _stage(shape: TopologyShape, need: Need, rates: Mapping[str, ComponentRates]) -> Stage:
    component, measured = shape.component(need.component), rates[need.component]
    # Each task gets the tuples of an ALL grouping, however many tasks there are: then more of them do not help.
    grows = all(each.divides for each in component.inputs) if component.inputs else measured.scales
    most = component.most if grows else need.needed
    return Stage(need.component, need.load, 1.0 / measured.true_rate, need.needed, most, latent=bool(component.inputs))


def _paths(shape: TopologyShape, known: frozenset[str]) -> Iterator[tuple[str, ...]]:
    """The ways from the sources to the sinks over known components, at most some."""
    readers: dict[str, set[str]] = {}
    for component in shape.components:
        for each in component.inputs:
            readers.setdefault(each.component, set()).add(component.name)
    found = 0
    waiting: list[tuple[str, ...]] = [
        (each.name,) for each in shape.components if not each.inputs and each.name in known
    ]
    while waiting and found < _MOST_PATHS:
        path = waiting.pop()
        following = sorted(readers.get(path[-1], set()) & known)
        waiting += [(*path, each) for each in following]
        if not following:
            found += 1
            yield path


def _tasks_in(shape: TopologyShape, container: int) -> int:
    return sum(place == container for each in shape.components for place in each.tasks.values())


def _with_overhead(bare: PlanModel, measurements: Measurements, present: Mapping[str, int]) -> PlanModel:
    """The model with the latency that was measured beyond its own; where a task is full, that says nothing."""
    measured_s = max((each.value for each in measurements.of("complete-p99-s")), default=None)
    if measured_s is None:
        return replace(bare, overhead_s=None)
    own_s = bare.latency_s(present)
    return replace(bare, overhead_s=max(0.0, measured_s - own_s) if math.isfinite(own_s) else 0.0)


def _unmeasured(measurements: Measurements, objectives: Objectives, unknown: Mapping[str, str]) -> Iterator[str]:
    """What is asked for and not measured, with the reason."""
    sources = [each.name for each in measurements.shape.components if not each.inputs]
    if objectives.drain_s is not None:
        for source in sources:
            if measurements.value("backlog", Subject(source)) is None:
                yield f"the backlog of {source}: its spout has no method `backlog`, or it has not reported yet"
    if objectives.latency_s is not None and not list(measurements.of("complete-p99-s")):
        yield "latency: spouts measure it only at least once, by the acks of their tuples"
    for component, reason in unknown.items():
        yield f"the size of {component}: {reason}"
