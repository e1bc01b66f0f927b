"""A topology as a fluid model: rates, costs and parallelism give the use of each task's time, and its metrics.

Tuples are divided evenly. While one component cannot follow, back pressure throttles the sources that feed it, all by
the same share. That is what the engine does once the buffers are full, so the model is a steady state.
"""

from __future__ import annotations

import math
import random
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from heron.spi.health_values import ComponentShape, Observation, Sample, Subscription, TopologyShape

__all__ = ["Model", "Part"]


@dataclass(frozen=True)
class Part:
    """A component: `cost_s` of useful time for each tuple, and tuples emitted for each one on the stream ``default``.

    `overhead_s` is added to the cost for each task beyond the first: true rates fall a little when a component grows.
    `offered` is the rate of a source in tuples/s, and 0 for a bolt. `blocked` is the share of the cost off CPU.
    """

    name: str
    cost_s: float
    inputs: tuple[Subscription, ...] = ()
    ratio: float = 1.0
    offered: float = 0.0
    overhead_s: float = 0.0
    blocked: float = 0.0
    most: int | None = None


@dataclass
class Model:
    """The parts in the order of the data, and the present parallelism; `noise` is relative."""

    parts: tuple[Part, ...]
    tasks: dict[str, int]
    noise: float = 0.0
    backlog: Mapping[str, float] = field(default_factory=dict)
    seed: int = 1
    version: int = 1

    def shape(self) -> TopologyShape:
        """The plan. The tasks of a component have dense ids, and containers hold ten tasks."""
        components, first = [], 1
        for part in self.parts:
            ids = range(first, first + self.tasks[part.name])
            first = ids.stop
            kind = "bolt" if part.inputs else "spout"
            places = {task: 1 + task // 10 for task in ids}
            components.append(ComponentShape(part.name, kind, places, part.inputs, most=part.most))
        return TopologyShape("model", tuple(components), self.version)

    def apply(self, parallelism: Mapping[str, int]) -> None:
        """Change the plan."""
        self.tasks.update(parallelism)
        self.version += 1

    def cost_s(self, part: Part) -> float:
        return part.cost_s + part.overhead_s * (self.tasks[part.name] - 1)

    def load(self, part: Part, share: Mapping[str, float]) -> float:
        """Tuples/s of one task, when each source emits that share of what it is offered."""
        if not part.inputs:
            return part.offered * share[part.name] / self.tasks[part.name]
        load = 0.0
        for each in part.inputs:
            source = self._part(each.component)
            flow = self.load(source, share) * self.tasks[source.name] * source.ratio
            load += flow / self.tasks[part.name] if each.divides else flow
        return load

    def shares(self) -> dict[str, float]:
        """The share of its offer that each source can emit."""
        share = {part.name: 1.0 for part in self.parts if not part.inputs}
        for part in self.parts:
            used = self.load(part, share) * self.cost_s(part)
            if used > 1:
                for source in self._sources(part):
                    share[source] /= used
        return share

    def used(self) -> dict[str, float]:
        """The share of the time that the tasks of each component are useful now."""
        share = self.shares()
        return {part.name: self.load(part, share) * self.cost_s(part) for part in self.parts}

    def optimum(self, part: Part, utilisation: float) -> int:
        """The smallest number of tasks that can do everything that the sources offer, at that utilisation."""
        full = {each.name: 1.0 for each in self.parts if not each.inputs}
        wanted = dict(self.tasks)
        for tasks in range(1, 10_000):
            self.tasks[part.name] = tasks
            if self.load(part, full) * self.cost_s(part) <= utilisation * (1 + 1e-9):
                break
        found, self.tasks = self.tasks[part.name], wanted
        return found

    def observe(self, at_s: float) -> Observation:
        """The metrics of this moment."""
        shape, share = self.shape(), self.shares()
        noise = random.Random(f"{self.seed} {self.version} {at_s}")
        samples: list[Sample] = []
        for component in shape.components:
            part = self._part(component.name)
            for task, container in component.tasks.items():
                samples += self._task(part, task, container, share, noise)
        return Observation(at_s, shape, (*samples, *self._pressure(shape, share)))

    def _pressure(self, shape: TopologyShape, share: Mapping[str, float]) -> list[Sample]:
        """The tasks without time to spare are culprits for the time in which their sources are throttled."""
        found = []
        for component in shape.components:
            part = self._part(component.name)
            if part.inputs and self.load(part, share) * self.cost_s(part) > 1 - 1e-6:
                held = 1.0 - min(share[source] for source in self._sources(part))
                found += [
                    Sample("backpressure-s", 0.0, "", 0, place, "stmgr", {"task": str(task)}, held)
                    for task, place in component.tasks.items()
                ]
        return found

    def _task(
        self, part: Part, task: int, container: int, share: Mapping[str, float], noise: random.Random
    ) -> list[Sample]:
        rate = self.load(part, share) * (1 + noise.uniform(-self.noise, self.noise))
        useful = min(1.0, rate * self.cost_s(part) * (1 + noise.uniform(-self.noise, self.noise)))
        uses = {"user-cpu": useful * (1 - part.blocked), "user-blocked": useful * part.blocked, "engine": 0.0}
        rest = 1.0 - useful
        if part.inputs:
            uses |= {"input": rest, "room": 0.0}
        else:
            throttled = min(rest, 1.0 - share[part.name])
            uses |= {"throttled": throttled, "input": rest - throttled, "room": 0.0, "acks": 0.0}
        base = Sample("", 1e6, part.name, task, container, f"{part.name}-{task}")
        found = [
            replace(base, name="task-time-s", labels={"use": use}, rate_per_s=value) for use, value in uses.items()
        ]
        emitted = rate if not part.inputs else rate * part.ratio
        found.append(replace(base, name="emit-count", labels={"stream": "default"}, rate_per_s=emitted))
        found.append(replace(base, name="in-queue-bytes", value=1e5 if useful > 1 - 1e-6 else 0.0))
        if part.inputs:
            labels = {"component": part.inputs[0].component, "stream": "default"}
            found.append(replace(base, name="execute-count", labels=labels, rate_per_s=rate))
        elif part.name in self.backlog:
            found.append(replace(base, name="backlog", value=self.backlog[part.name]))
        return found

    def _part(self, name: str) -> Part:
        return next(each for each in self.parts if each.name == name)

    def _sources(self, part: Part) -> set[str]:
        if not part.inputs:
            return {part.name}
        return {source for each in part.inputs for source in self._sources(self._part(each.component))}


def smallest(load: float, cost_s: float, utilisation: float) -> int:
    """The known optimum of one component."""
    return max(1, math.ceil(load * cost_s / utilisation - 1e-9))
