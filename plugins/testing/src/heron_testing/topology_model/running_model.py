"""A topology over time: the load changes, tuples wait at their source, results come in bursts, and plans take a while.

Time goes in steps of a second. The buffers of a component hold what its tasks can do in six seconds. The engine lets a
source emit as long as there is room, so a source emits what fits into all buffers that its tuples reach; the rest waits
at the source, and is its backlog. All data is divided among the tasks evenly.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from heron.spi.health_values import Observation
from heron_testing.topology_model.fluid_model import Flow, Model, Part, samples_of

__all__ = ["Load", "RunningModel"]

Load = Callable[[float], float]
"""The tuples per second that a source has at a second."""

_BUFFERED_S = 6.0
_BYTES = 100.0  # of a tuple


@dataclass
class RunningModel:
    """A model whose sources have these loads, by name. An update takes `update_s` seconds.

    `backlogs`: the spouts report what waits at their source. `now_s` is the time, from 0.
    """

    model: Model
    loads: Mapping[str, Load]
    update_s: int = 5
    backlogs: bool = True
    now_s: float = 0.0
    flows: dict[str, Flow] = field(default_factory=dict)
    offered: dict[str, float] = field(default_factory=dict)
    waiting: dict[str, float] = field(default_factory=dict)
    """Tuples that wait for each component; for a spout, at its source."""
    _windows: dict[str, float] = field(default_factory=dict)
    _totals: dict[str, float] = field(default_factory=dict)

    def second(self) -> None:
        """Let a second pass."""
        self.now_s += 1.0
        out: dict[str, float] = {}
        emitted = self._emitted()
        for part in self.model.parts:
            tasks = self.model.tasks[part.name]
            came = sum(out[each.component] for each in part.inputs) if part.inputs else self.offered[part.name]
            waits = self.waiting.get(part.name, 0.0) + came
            done = min(waits, self._capacity(part)) if part.inputs else emitted[part.name]
            self.waiting[part.name] = waits - done
            out[part.name] = self._results(part, done)
            self._totals[part.name] = self._totals.get(part.name, 0.0) + done / tasks
            left = self.waiting[part.name]
            full = left >= _BUFFERED_S * self._capacity(part) * (1 - 1e-6)
            self.flows[part.name] = Flow(
                done / tasks,
                out[part.name] / tasks,
                done / tasks * self.model.cost_s(part),
                held=0.0 if part.inputs or waits <= 0 else left / waits,
                pressing=self._held_behind(part) if part.inputs and full else 0.0,
                queue_bytes=_BYTES * left / tasks if part.inputs else 0.0,
                backlog=left / tasks if self.backlogs and not part.inputs else None,
                total=self._totals[part.name],
            )

    def observe(self) -> Observation:
        """What can be seen now."""
        shape = self.model.shape()
        noise = random.Random(f"{self.model.seed} {self.now_s}")
        flows = {name: [flow] * self.model.tasks[name] for name, flow in self.flows.items()}
        samples = tuple(samples_of(shape, self.model.parts, flows, self.model.noise, noise))
        return Observation(self.now_s, shape, samples)

    def update(self, parallelism: Mapping[str, int]) -> None:
        """Change the plan; the present tasks go on until the new plan is complete."""
        self.model.changing = True
        for _ in range(self.update_s):
            self.second()
        self.model.changing = False
        self.model.apply(parallelism)

    def behind(self) -> bool:
        """Whether the sources emit less than they are offered, or have not emitted all of it yet."""
        return any(self.waiting[source] > 0.05 * max(1.0, load) for source, load in self.offered.items())

    def optimum(self, utilisation: float) -> dict[str, int]:
        """The tasks that the present load needs at that utilisation."""
        offered = tuple(
            replace(each, offered=self.offered[each.name]) if not each.inputs else each for each in self.model.parts
        )
        model = Model(offered, dict(self.model.tasks))
        return {each.name: model.optimum(each, utilisation) for each in offered if each.inputs}

    def _emitted(self) -> dict[str, float]:
        """What each source emits: what it has, as far as all buffers that this reaches have room for it."""
        self.offered = {name: load(self.now_s) for name, load in self.loads.items()}
        wanted = {name: self.waiting.get(name, 0.0) + offered for name, offered in self.offered.items()}
        share = dict.fromkeys(wanted, 1.0)
        reach: dict[str, dict[str, float]] = {}  # tuples of a component by source, if nothing is held
        for part in self.model.parts:
            if not part.inputs:
                reach[part.name] = {part.name: wanted[part.name]}
                continue
            reach[part.name] = {}
            for each in part.inputs:
                before = self._part(each.component)
                ratio = 0.0 if before.window_s and not self._window_ends(before) else before.ratio
                for source, tuples in reach[each.component].items():
                    reach[part.name][source] = reach[part.name].get(source, 0.0) + tuples * (
                        ratio if before.inputs else 1.0
                    )
            comes = sum(tuples * share[source] for source, tuples in reach[part.name].items())
            room = (1 + _BUFFERED_S) * self._capacity(part) - self.waiting.get(part.name, 0.0)
            if room <= 0 or comes > room:
                for source in reach[part.name]:
                    share[source] *= max(0.0, room) / comes if comes else 0.0
        return {source: tuples * share[source] for source, tuples in wanted.items()}

    def _results(self, part: Part, done: float) -> float:
        if not part.inputs:
            return done
        if not part.window_s:
            return done * part.ratio
        kept = self._windows.get(part.name, 0.0) + done * part.ratio
        self._windows[part.name] = 0.0 if self._window_ends(part) else kept
        return kept if self._window_ends(part) else 0.0

    def _window_ends(self, part: Part) -> bool:
        return self.now_s % part.window_s == 0

    def _held_behind(self, part: Part) -> float:
        """The share of the second in which the sources in front of a component are held."""
        flows = [self.flows[each] for each in self.model.sources(part)]
        return max(each.held for each in flows)

    def _capacity(self, part: Part) -> float:
        return self.model.tasks[part.name] / self.model.cost_s(part)

    def _part(self, name: str) -> Part:
        return next(each for each in self.model.parts if each.name == name)
