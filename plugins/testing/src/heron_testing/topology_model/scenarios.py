"""Topologies with known costs whose load steps up and down, and what a policy makes of them."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass

from heron.spi.health import HealthPolicy
from heron.spi.health_section import HealthSection
from heron.spi.health_values import Subscription
from heron_testing.topology_model.fluid_model import Model, Part
from heron_testing.topology_model.managed_model import ManagedModel
from heron_testing.topology_model.running_model import RunningModel

__all__ = ["SCENARIOS", "Outcome", "Scenario", "step"]

WANTED = 0.85
_REST_S = 300  # without a change in this time, there will be none
_LONGEST_S = 1800


@dataclass(frozen=True)
class Scenario:
    """A topology; each of its sources has first the low load, then the high one, and the low one again (tuples/s)."""

    name: str
    text: str
    parts: tuple[Part, ...]
    low: float
    high: float


@dataclass(frozen=True)
class Outcome:
    """What followed a step of the load: updates, seconds until nothing waited for good, tasks at rest and needed.

    `rests`: the plan did not change any more.
    """

    load: float
    steps: int
    settled_s: float
    tasks: Mapping[str, int]
    optimum: Mapping[str, int]
    rests: bool = True

    @property
    def more(self) -> int:
        """The tasks beyond the optimum of the component that is furthest from it; negative below it."""
        return max((self.tasks[name] - needed for name, needed in self.optimum.items()), key=abs)


def after(*names: str) -> tuple[Subscription, ...]:
    """Inputs whose tuples are divided among the tasks."""
    return tuple(Subscription(each, "default") for each in names)


SCENARIOS = (
    Scenario(
        "chain",
        "three stages: 2 ms, then 8 ms, then 1 ms for each of four results",
        (
            Part("events", 1e-6),
            Part("parse", 0.002, after("events")),
            Part("enrich", 0.008, after("parse"), ratio=4.0),
            Part("store", 0.001, after("enrich"), ratio=0.0),
        ),
        100.0,
        800.0,
    ),
    Scenario(
        "fan-out",
        "two ways, one emits six tuples for each event and one emits one of five; both end in one component",
        (
            Part("events", 1e-6),
            Part("split", 0.003, after("events"), ratio=6.0),
            Part("filter", 0.001, after("events"), ratio=0.2),
            Part("count", 0.0006, after("split", "filter"), ratio=0.5),
            Part("store", 0.0004, after("count"), ratio=0.0),
        ),
        150.0,
        1200.0,
    ),
    Scenario(
        "windowed join",
        "two sources joined in windows of 5 s, whose results come at the end of each window",
        (
            Part("orders", 1e-6),
            Part("payments", 1e-6),
            Part("join", 0.004, after("orders", "payments"), ratio=0.5, window_s=5),
            Part("store", 0.002, after("join"), ratio=0.0),
        ),
        60.0,
        500.0,
    ),
)


@functools.cache
def step(scenario: Scenario, policy: type[HealthPolicy]) -> tuple[Outcome, Outcome]:
    """Let the load step up, and down again; the first plan is the one that the low load needs."""
    load = [scenario.low]
    sources = {each.name: lambda _: load[0] for each in scenario.parts if not each.inputs}
    model = Model(scenario.parts, {each.name: 1 for each in scenario.parts}, noise=0.02)
    running = RunningModel(model, sources)
    running.second()
    model.tasks.update(running.optimum(WANTED))
    managed = ManagedModel(running, policy.open({}), HealthSection(mode="act"))
    managed.runs(_REST_S)
    managed.changes.clear()
    load[0] = scenario.high
    up = _outcome(managed, load[0])
    load[0] = scenario.low
    return up, _outcome(managed, load[0])


def _outcome(managed: ManagedModel, load: float) -> Outcome:
    running = managed.running
    start_s, before, settled_s = running.now_s, len(managed.changes), running.now_s
    quiet_s = start_s
    while running.now_s - quiet_s < _REST_S and running.now_s - start_s < _LONGEST_S:
        seen = len(managed.changes)
        managed.second()
        if running.behind():
            settled_s = running.now_s
        if running.behind() or len(managed.changes) > seen:
            quiet_s = running.now_s
    optimum = running.optimum(WANTED)
    tasks = {name: running.model.tasks[name] for name in optimum}
    rests = running.now_s - start_s < _LONGEST_S
    return Outcome(load, len(managed.changes) - before, settled_s - start_s, tasks, optimum, rests)
