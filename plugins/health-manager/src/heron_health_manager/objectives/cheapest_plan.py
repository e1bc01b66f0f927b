"""The cheapest plan that meets all objectives in the model, or why there is none. Pure.

Each task costs the same, so the cheapest plan is one with the fewest tasks. Throughput gives each component its least
number. Latency couples the components of a path: the search goes from plan to plan by one task more of one component of
a path that is too slow, the most promising plan first (A*). The tasks that the slowest path needs by itself are a lower
bound: on one path, giving each task where it helps most is optimal, because the gain falls with each task.
"""

from __future__ import annotations

import heapq
from collections.abc import Mapping
from dataclasses import dataclass

from heron_health_manager.objectives.grammar import Objectives
from heron_health_manager.objectives.plan_model import PlanModel, latency_text

__all__ = ["PlanSearch", "cheapest_plan"]

_MOST_PLANS = 300  # searched; then the best known plan is taken
_MOST_STEPS = 20_000  # tasks added for latency


@dataclass(frozen=True, slots=True)
class PlanSearch:
    """The plan, by component; None if none meets the objectives, and then `reason` says why.

    `contradiction`: the objectives exclude each other, though each of them can be met. `proved`: no plan is cheaper.
    """

    plan: Mapping[str, int] | None
    reason: str = ""
    contradiction: bool = False
    proved: bool = True


def cheapest_plan(model: PlanModel, objectives: Objectives) -> PlanSearch:
    """Search for it; the objectives of throughput are in the least tasks of the model's stages."""
    start = {name: stage.least for name, stage in model.stages.items()}
    limit_s = objectives.latency_s if model.overhead_s is not None else None
    if limit_s is not None and (best_s := _best_s(model)) >= limit_s and model.latency_s(start) > limit_s:
        reason = f"it is at least {latency_text(best_s)} with any number of tasks"
        return PlanSearch(None, f"latency p99 <= {latency_text(limit_s)}: {reason}")
    bound = model.most_tasks(objectives)
    needed = model.tasks(start)
    if bound is not None and needed > bound[0]:
        return _contradiction(model, "the throughput", needed, bound)
    if limit_s is None:
        return PlanSearch(start)
    plan, proved = _fast_enough(model, start, limit_s)
    if plan is None:
        return PlanSearch(None, f"latency p99 <= {latency_text(limit_s)} needs over {_MOST_STEPS:,} tasks more")
    if bound is not None and model.tasks(plan) > bound[0]:
        return _contradiction(model, f"latency p99 <= {latency_text(limit_s)}", model.tasks(plan), bound)
    return PlanSearch(plan, proved=proved)


def _contradiction(model: PlanModel, what: str, tasks: int, bound: tuple[int, str]) -> PlanSearch:
    containers = model.containers(tasks)
    needs = f"{tasks:,} tasks in {containers:,} containers, which cost {model.cost(tasks):g}"
    reason = f"{what} needs {needs}; {bound[1]} permits {bound[0]:,} tasks"
    return PlanSearch(None, reason, contradiction=True)


def _best_s(model: PlanModel) -> float:
    """The latency that no plan falls below."""
    paths = (sum(model.stages[each].best_s() for each in path) for path in model.paths)
    return (model.overhead_s or 0.0) + max(paths, default=0.0)


def _fast_enough(model: PlanModel, start: Mapping[str, int], limit_s: float) -> tuple[dict[str, int] | None, bool]:
    """The plan with the fewest tasks from `start` on whose paths are all within the limit, and whether it is proved."""
    quick = _greedy(model, start, limit_s)
    least = _needed_steps(model, start, limit_s)
    if quick is None or least is None:
        return None, True
    if model.tasks(quick) == model.tasks(start) + least:
        return quick, True
    return _search(model, start, limit_s, quick)


def _search(
    model: PlanModel, start: Mapping[str, int], limit_s: float, quick: dict[str, int]
) -> tuple[dict[str, int], bool]:
    """The plan with the fewest tasks; `quick` is known to be fast enough."""
    names = tuple(start)
    first = tuple(start[each] for each in names)
    known = {first}
    waiting = [(0, 0, first)]  # the tasks that a plan will add at least, those that it has added (negative), the plan
    for _ in range(_MOST_PLANS):
        _, added, found = heapq.heappop(waiting)
        plan = dict(zip(names, found, strict=True))
        slow = model.slowest(plan)
        if model.path_s(slow, plan) <= limit_s:
            return plan, True
        for name in slow:
            if not _may_grow(model, name, plan[name]):
                continue
            larger = {**plan, name: plan[name] + 1}
            key = tuple(larger[each] for each in names)
            if key not in known and (rest := _needed_steps(model, larger, limit_s)) is not None:
                known.add(key)
                heapq.heappush(waiting, (1 - added + rest, added - 1, key))
    return quick, False


def _needed_steps(model: PlanModel, plan: Mapping[str, int], limit_s: float) -> int | None:
    """The tasks that the most demanding path needs beyond a plan, at least; None if it cannot be fast enough."""
    most = 0
    for path in model.paths:
        steps = _steps_of(model, path, plan, limit_s)
        if steps is None:
            return None
        most = max(most, steps)
    return most


def _steps_of(model: PlanModel, path: tuple[str, ...], plan: Mapping[str, int], limit_s: float) -> int | None:
    tried = dict(plan)
    for step in range(_MOST_STEPS):
        if model.path_s(path, tried) <= limit_s:
            return step
        name = _most_helpful(model, path, tried)
        if name is None:
            return None
        tried[name] += 1
    return None


def _greedy(model: PlanModel, start: Mapping[str, int], limit_s: float) -> dict[str, int] | None:
    plan = dict(start)
    for _ in range(_MOST_STEPS):
        slow = model.slowest(plan)
        if model.path_s(slow, plan) <= limit_s:
            return plan
        name = _most_helpful(model, slow, plan)
        if name is None:
            return None
        plan[name] += 1
    return None


def _most_helpful(model: PlanModel, path: tuple[str, ...], plan: Mapping[str, int]) -> str | None:
    """The component of a path whose next task saves the most time; None if none may have another one."""
    gains = {
        name: model.stages[name].latency_s(plan[name]) - model.stages[name].latency_s(plan[name] + 1)
        for name in path
        if _may_grow(model, name, plan[name])
    }
    return max(gains, key=lambda each: (gains[each], each), default=None)


def _may_grow(model: PlanModel, name: str, tasks: int) -> bool:
    stage = model.stages[name]
    return stage.latent and (stage.most is None or tasks < stage.most)
