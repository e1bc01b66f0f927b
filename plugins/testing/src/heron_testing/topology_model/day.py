"""A day of load, from a quiet night to a busy afternoon with noise, under a policy: its costs and its misses."""

from __future__ import annotations

import functools
import math
import random
from collections.abc import Sequence
from dataclasses import dataclass

from heron.spi.health import HealthPolicy
from heron.spi.health_section import HealthSection
from heron_testing.topology_model.fluid_model import Model, Part
from heron_testing.topology_model.managed_model import Change, ManagedModel
from heron_testing.topology_model.running_model import RunningModel
from heron_testing.topology_model.scenarios import WANTED, after

__all__ = ["DAY_S", "Day", "daily_load", "day"]

DAY_S = 86_400
_LOWEST, _HIGHEST = 10.0, 110.0  # lines/s
_RIPPLES = ((420.0, 0.03), (2460.0, 0.03))  # seconds, share of the load
_SPREAD = 0.05  # of each second
_PERIOD_S = 10
_RHYTHM = {"period_s": _PERIOD_S, "look_back_s": 30}
_OSCILLATION_S = 1800.0
_HOUR_S = 3600.0

PARTS = (
    Part("lines", 1e-6),
    Part("split", 0.040, after("lines"), ratio=10.0),
    Part("count", 0.004, after("split"), ratio=0.0),
)


@dataclass(frozen=True)
class Day:
    """`behind` is the share of the seconds in which lines waited at the source; `longest_s` is the longest such time.

    `turns` counts the changes of a component that went back within half an hour. Hours are those of tasks of bolts;
    `optimum_hours` are those of the smallest plan for the load of each minute.
    """

    changes: int
    turns: int
    behind: float
    longest_s: int
    task_hours: float
    optimum_hours: float


def daily_load(at_s: float) -> float:
    """Lines per second: lowest at 4 o'clock and highest at 16 o'clock, with ripples of minutes and noise of seconds."""
    mean, swing = (_HIGHEST + _LOWEST) / 2, (_HIGHEST - _LOWEST) / 2
    curve = mean - swing * math.cos(2 * math.pi * (at_s / DAY_S - 4 / 24))
    ripples = sum(share * math.sin(2 * math.pi * at_s / period_s) for period_s, share in _RIPPLES)
    noise = random.Random(int(at_s)).uniform(-_SPREAD, _SPREAD)
    return curve * (1 + ripples + noise)


def smooth_load(at_s: float) -> float:
    """The load without the noise of seconds."""
    return sum(daily_load(at_s + second) for second in range(-30, 30)) / 60


@functools.cache
def day(policy: type[HealthPolicy]) -> Day:
    """Let a day pass; the topology is observed, and the policy asked, every 10 s."""
    running = RunningModel(Model(PARTS, {"lines": 1, "split": 2, "count": 2}, noise=0.02), {"lines": daily_load})
    managed = ManagedModel(running, policy.open(_RHYTHM), HealthSection(mode="act"), _PERIOD_S)
    behind = longest_s = spell_s = 0
    tasks_s = optimum_s = 0.0
    while running.now_s < DAY_S:
        before_s = running.now_s
        managed.second()
        passed_s = int(running.now_s - before_s)  # more than one where an update was carried out
        spell_s = spell_s + passed_s if running.behind() else 0
        longest_s = max(longest_s, spell_s)
        behind += passed_s if running.behind() else 0
        tasks_s += passed_s * sum(running.model.tasks[part.name] for part in PARTS if part.inputs)
        if running.now_s // 60 > before_s // 60:
            optimum_s += 60 * _optimum(running.now_s)
    return Day(
        len(managed.changes),
        turns(managed.changes),
        behind / DAY_S,
        longest_s,
        tasks_s / _HOUR_S,
        optimum_s / _HOUR_S,
    )


def _optimum(at_s: float) -> int:
    load = smooth_load(at_s)
    return sum(max(1, math.ceil(load * tuples * cost_s / WANTED)) for cost_s, tuples in ((0.040, 1), (0.004, 10)))


def turns(changes: Sequence[Change]) -> int:
    """The changes that took back a change of the same component within half an hour."""
    found = 0
    last: dict[str, tuple[float, int, int]] = {}  # when, its number of tasks, and the direction
    for change in changes:
        for name, tasks in change.parallelism.items():
            at_s, before, direction = last.get(name, (-math.inf, 0, 0))
            now = 0 if not before else (1 if tasks > before else -1)
            found += direction * now < 0 and change.at_s - at_s < _OSCILLATION_S
            last[name] = change.at_s, tasks, now
    return found
