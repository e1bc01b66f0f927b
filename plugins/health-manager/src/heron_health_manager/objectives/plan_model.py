"""What a plan costs, and how long a tuple takes through it. Pure.

The latency of a component is that of a queue (M/M/1). With a mean of `service_s` for a tuple, and a task that is used
for a share of its time, 99 % of the tuples leave within ``ln(100) * service_s / (1 - used)``. A path takes the sum of
its components. What was measured beyond that (batches, links) is added to each plan.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from heron_health_manager.objectives.grammar import Objectives

__all__ = ["PlanModel", "Stage", "latency_text"]

_P99 = math.log(100.0)


def latency_text(seconds: float) -> str:
    """``180 ms``, ``12.5 s``, or ``unbounded``."""
    if math.isinf(seconds):
        return "unbounded"
    return f"{1000 * seconds:,.0f} ms" if seconds < 10 else f"{seconds:,.1f} s"


@dataclass(frozen=True, slots=True)
class Stage:
    """A component: `load` tuples/s for all of its tasks, each of which takes `service_s` for one.

    It has at least `least` tasks, which serve the load, and at most `most` (None: any number). A stage that more tasks
    do not make faster has both equal. `latent`: its queue is a part of the latency, as that of every bolt is.
    """

    name: str
    load: float
    service_s: float
    least: int
    most: int | None = None
    latent: bool = True

    def latency_s(self, tasks: int) -> float:
        """The time that 99 % of the tuples need; infinite where the tasks cannot do the load."""
        free = 1.0 - self.load * self.service_s / tasks
        if not self.latent:
            return 0.0
        return _P99 * self.service_s / free if free > 0 else math.inf

    def best_s(self) -> float:
        """What no number of tasks falls below."""
        return self.latency_s(self.most) if self.most is not None else _P99 * self.service_s * self.latent


@dataclass(frozen=True, slots=True)
class PlanModel:
    """A topology as the search for a plan sees it.

    `paths` are the ways from the sources to the sinks, as names of stages. `others` is the number of tasks that no
    plan changes. A container has at most `per_container` tasks. `overhead_s` is latency that no number of tasks
    changes; None if latency is not measured, so that no objective about it can be judged.
    """

    stages: Mapping[str, Stage]
    paths: tuple[tuple[str, ...], ...]
    others: int = 0
    per_container: int = 10
    container_cost: float = 1.0
    task_cost: float = 0.0
    overhead_s: float | None = 0.0

    def tasks(self, plan: Mapping[str, int]) -> int:
        """All tasks of the topology."""
        return self.others + sum(plan.values())

    def containers(self, tasks: int) -> int:
        """The containers for that number of tasks, at least one."""
        return max(1, -(-tasks // self.per_container))

    def cost(self, tasks: int, containers: int | None = None) -> float:
        """The cost of that number of tasks in that many containers; in those that they need, it never falls."""
        needed = self.containers(tasks) if containers is None else containers
        return self.container_cost * needed + self.task_cost * tasks

    def path_s(self, path: tuple[str, ...], plan: Mapping[str, int]) -> float:
        """The latency of one path."""
        return (self.overhead_s or 0.0) + sum(self.stages[each].latency_s(plan[each]) for each in path)

    def slowest(self, plan: Mapping[str, int]) -> tuple[str, ...]:
        """The path with the greatest latency; empty without paths."""
        return max(self.paths, key=lambda path: self.path_s(path, plan), default=())

    def latency_s(self, plan: Mapping[str, int]) -> float:
        """The latency of the slowest path."""
        return self.path_s(self.slowest(plan), plan)

    def most_tasks(self, objectives: Objectives) -> tuple[int, str] | None:
        """The most tasks that the objectives permit, and the objective that bounds them most; None without a bound."""
        bounds: list[tuple[int, str]] = []
        if objectives.containers is not None:
            bounds.append((objectives.containers * self.per_container, f"containers <= {objectives.containers}"))
        if objectives.tasks is not None:
            bounds.append((objectives.tasks, f"tasks <= {objectives.tasks}"))
        if objectives.cost is not None:
            bounds.append((self._affordable(objectives.cost), f"cost <= {objectives.cost:g}"))
        return min(bounds, default=None)

    def _affordable(self, cost: float) -> int:
        """The largest number of tasks that costs at most this; 0 if even one is too expensive."""
        low, high = 0, 1
        while self.cost(high) <= cost and high < _MOST:
            low, high = high, 2 * high
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if self.cost(middle) <= cost else (low, middle)
        return low


_MOST = 1 << 30  # tasks: nobody has more, and a cost of nothing permits any number
