"""A topology as a fluid model: rates, costs and parallelism give the use of each task's time, and its metrics.

Tuples are divided evenly. While one component cannot follow, back pressure throttles the sources that feed it, all by
the same share. That is what the engine does once the buffers are full, so the model is a steady state.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from heron.spi.health_values import ComponentShape, Observation, Sample, Subscription, TopologyShape

__all__ = ["Flow", "Model", "Part", "samples_of"]


@dataclass(frozen=True)
class Part:
    """A component: `cost_s` of useful time for each tuple, and tuples emitted for each one on the stream ``default``.

    `overhead_s` is added to the cost for each task beyond the first: true rates fall a little when a component grows.
    `offered` is the rate of a source in tuples/s, and 0 for a bolt. `blocked` is the share of the cost off CPU. A
    component whose input is grouped by key has `groups`, and at most as many tasks. A component with `window_s` emits
    its results at the ends of windows (only in `RunningModel`).
    """

    name: str
    cost_s: float
    inputs: tuple[Subscription, ...] = ()
    ratio: float = 1.0
    offered: float = 0.0
    overhead_s: float = 0.0
    blocked: float = 0.0
    most: int | None = None
    groups: int | None = None
    window_s: int = 0

    @property
    def bound(self) -> int | None:
        """The most tasks that it may have."""
        return min((each for each in (self.most, self.groups) if each is not None), default=None)


@dataclass(frozen=True)
class Flow:
    """What a task of a component does in a second: tuples (a spout: that it emits), tuples emitted, shares of time.

    `held` is the share in which back pressure holds a spout, and `pressing` that in which the component causes it.
    `total` is the number of its tuples so far.
    """

    rate: float
    emitted: float
    useful: float
    held: float = 0.0
    pressing: float = 0.0
    queue_bytes: float = 0.0
    backlog: float | None = None
    total: float = 1e6


@dataclass
class Model:
    """The parts in the order of the data, and the present parallelism; `noise` is relative."""

    parts: tuple[Part, ...]
    tasks: dict[str, int]
    noise: float = 0.0
    backlog: Mapping[str, float] = field(default_factory=dict)
    seed: int = 1
    version: int = 1
    changing: bool = False

    def shape(self) -> TopologyShape:
        """The plan. The tasks of a component have dense ids, and containers hold ten tasks."""
        components, first = [], 1
        for part in self.parts:
            ids = range(first, first + self.tasks[part.name])
            first = ids.stop
            kind = "bolt" if part.inputs else "spout"
            places = {task: 1 + task // 10 for task in ids}
            components.append(ComponentShape(part.name, kind, places, part.inputs, most=part.bound, groups=part.groups))
        return TopologyShape("model", tuple(components), self.version, self.changing)

    def apply(self, parallelism: Mapping[str, int]) -> None:
        """Change the plan."""
        self.tasks.update(parallelism)
        self.version += 1

    def cost_s(self, part: Part) -> float:
        """Useful seconds for each tuple, with the present number of tasks."""
        return part.cost_s + part.overhead_s * (self.tasks[part.name] - 1)

    def load(self, part: Part, share: Mapping[str, float]) -> float:
        """Tuples/s of the task that has most of them, when each source emits that share of what it is offered."""
        return max(self.loads(share)[part.name])

    def loads(self, share: Mapping[str, float]) -> dict[str, list[float]]:
        """Tuples/s of each task by component. Tasks own key groups evenly, so their numbers differ by at most one."""
        found: dict[str, list[float]] = {}
        out: dict[str, float] = {}
        for part in self.parts:
            tasks = self.tasks[part.name]
            groups = part.groups or tasks
            parts_of = [(groups // tasks + (task < groups % tasks)) / groups for task in range(tasks)]
            divided = sum(out[each.component] for each in part.inputs if each.divides)
            if not part.inputs:
                divided = part.offered * share[part.name]
            loads = [divided * each for each in parts_of]
            for each in part.inputs:
                if not each.divides:
                    for task in range(1 if each.lowest else tasks):
                        loads[task] += out[each.component]
            found[part.name], out[part.name] = loads, sum(loads) * part.ratio
        return found

    def shares(self) -> dict[str, float]:
        """The share of its offer that each source can emit."""
        share = {part.name: 1.0 for part in self.parts if not part.inputs}
        for part in self.parts:
            used = self.load(part, share) * self.cost_s(part)
            if used > 1:
                for source in self.sources(part):
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
        loads = self.loads(share)
        flows = {part.name: [self._flow(part, rate, share) for rate in loads[part.name]] for part in self.parts}
        return Observation(at_s, shape, tuple(samples_of(shape, self.parts, flows, self.noise, noise)))

    def _flow(self, part: Part, rate: float, share: Mapping[str, float]) -> Flow:
        held = 1.0 - min(share[source] for source in self.sources(part))
        full = rate * self.cost_s(part) > 1 - 1e-6
        return Flow(
            rate,
            rate * part.ratio if part.inputs else rate,
            rate * self.cost_s(part),
            held=0.0 if part.inputs else held,
            pressing=held if full and part.inputs else 0.0,
            queue_bytes=1e5 if full else 0.0,
            backlog=self.backlog.get(part.name),
        )

    def _part(self, name: str) -> Part:
        return next(each for each in self.parts if each.name == name)

    def sources(self, part: Part) -> set[str]:
        """The spouts whose tuples reach a component."""
        if not part.inputs:
            return {part.name}
        return {source for each in part.inputs for source in self.sources(self._part(each.component))}


def samples_of(
    shape: TopologyShape,
    parts: Iterable[Part],
    flows: Mapping[str, Sequence[Flow]],
    spread: float,
    noise: random.Random,
) -> Iterator[Sample]:
    """The metrics of all tasks, and of the stream managers that see back pressure.

    `flows` are those of each task of a component, by component; `spread` is the relative noise.
    """
    for component, part in zip(shape.components, parts, strict=True):
        for (task, container), flow in zip(component.tasks.items(), flows[part.name], strict=True):
            yield from _samples(part, task, container, flow, spread, noise)
            if flow.pressing:
                yield Sample("backpressure-s", 0.0, "", 0, container, "stmgr", {"task": str(task)}, flow.pressing)


def _samples(
    part: Part, task: int, container: int, flow: Flow, spread: float, noise: random.Random
) -> Iterator[Sample]:
    swing = 1 + noise.uniform(-spread, spread)
    useful = min(1.0, flow.useful * swing * (1 + noise.uniform(-spread, spread)))
    rest = 1.0 - useful
    uses = {"user-cpu": useful * (1 - part.blocked), "user-blocked": useful * part.blocked, "engine": 0.0}
    if part.inputs:
        uses |= {"input": rest, "room": 0.0}
    else:
        throttled = min(rest, flow.held)
        uses |= {"throttled": throttled, "input": rest - throttled, "room": 0.0, "acks": 0.0}
    process = f"{part.name}-{task}"

    def sample(name: str, value: float, labels: Mapping[str, str], rate_per_s: float | None = None) -> Sample:
        return Sample(name, value, part.name, task, container, process, labels, rate_per_s)

    for use, share in uses.items():
        yield sample("task-time-s", flow.total, {"use": use}, share)
    yield sample("emit-count", flow.total, {"stream": "default"}, flow.emitted * swing)
    yield sample("in-queue-bytes", flow.queue_bytes, {})
    if part.inputs:
        labels = {"component": part.inputs[0].component, "stream": "default"}
        yield sample("execute-count", flow.total, labels, flow.rate * swing)
    elif flow.backlog is not None:
        yield sample("backlog", flow.backlog, {})
