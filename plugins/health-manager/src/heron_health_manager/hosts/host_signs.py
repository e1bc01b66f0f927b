"""What a topology has measured of the hosts of its containers. Pure.

The service time of a component is the useful time of its tasks for each tuple, the inverse of their true rate. On a
host it is compared with that of the same component elsewhere, so programs need no thresholds. The median over the
components, and over the tasks, keeps one hot key or one stuck task from looking like a bad host.
"""

from __future__ import annotations

from collections.abc import Mapping
from statistics import median

import msgspec

from heron.spi.health_values import Measurements
from heron.state_nodes.host_report import HostSigns
from heron_health_manager.hosts.judge import HostRules, is_bad

__all__ = ["signs_of"]


def signs_of(
    measurements: Measurements,
    host_of: Mapping[int, str],
    former: Mapping[str, HostSigns],
    excused: Mapping[int, int],
    rules: HostRules | None = None,
) -> tuple[HostSigns, ...]:
    """The signs of each host; `host_of` are the hosts of containers, and `former` the signs of the look before.

    `excused` are the recent restarts that a task brought along when it came to its host.
    """
    rules = rules or HostRules()
    tasks: dict[str, int] = {}
    deaths: dict[str, int] = {}
    slowdowns: dict[str, list[float]] = {}
    for component in measurements.shape.components:
        places = {task: host_of[place] for task, place in component.tasks.items() if place in host_of}
        died = measurements.of_tasks("recent-restarts", component.name)
        for task, host in places.items():
            tasks[host] = tasks.get(host, 0) + 1
            deaths[host] = max(deaths.get(host, 0), int(died.get(task, 0)) - excused.get(task, 0))
        rates = measurements.of_tasks("true-rate", component.name)
        times = {task: 1.0 / rate for task, rate in rates.items() if rate > 0 and task in places}
        for host, times_as_long in _slowdowns(times, places).items():
            slowdowns.setdefault(host, []).append(times_as_long)
    found = []
    for host, count in sorted(tasks.items()):
        slowdown = round(median(slowdowns[host]), 2) if host in slowdowns else None
        signs = HostSigns(host, count, slowdown, deaths[host])
        before = former[host].looks if host in former else 0
        found.append(msgspec.structs.replace(signs, looks=before + 1 if is_bad(signs, rules) else 0))
    return tuple(found)


def _slowdowns(times: Mapping[int, float], places: Mapping[int, str]) -> dict[str, float]:
    """How many times as long the tasks of one component need on each host as those elsewhere."""
    found = {}
    for host in {places[task] for task in times}:
        here = [each for task, each in times.items() if places[task] == host]
        elsewhere = [each for task, each in times.items() if places[task] != host]
        if elsewhere:
            found[host] = median(here) / median(elsewhere)
    return found
