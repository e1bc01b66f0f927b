"""Compare shedding with dropping and with back pressure: how wrong results are, and how late, by overload.

A bolt takes 1,000 mentions a second, and the spout offers more of them. ``python -m bench.shedding`` computes the table
of docs/shedding.md in virtual time: the controllers and policies are the engine's, and the queue is a model, so the
table is the same on each machine. With ``--processes`` topologies run in processes, where the bolt sleeps in between.
There a spout with a target of latency knows what is in flight, because the topology tracks acks.
"""

from __future__ import annotations

import importlib
import json
import sys
from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from types import ModuleType
from typing import Any

from bench.engine import Engine
from bench.trial import TOPOLOGIES, Trial
from heron.api.api_constants import TOPOLOGY_SHED
from heron.api.shedding import shedding_of
from heron.driver_kit.keep_controller import PERIOD_S, KeepController, LatencyController, Offer, RateController
from heron.driver_kit.shedding_chances import KeyChances, uniform_chances

__all__ = ["main"]

CAPACITY, SECONDS, TOP = 1000, 60, 10
LOADS = (2, 10)
_DROPS_ABOVE_S = 2.0
_WATERMARKS = ("heron.stmgr.high.watermark.bytes=65536", "heron.stmgr.low.watermark.bytes=32768")
"""So that back pressure and dropping begin within a second; by default it would take minutes of these small tuples."""


@dataclass(frozen=True, slots=True)
class Way:
    """A reaction to overload, with its name in the table."""

    name: str
    shed: Mapping[str, object] | None = None
    drops: bool = False
    mode: str = "ATMOST_ONCE"


WAYS = (
    Way("`uniform`, rate 900/s", {"policy": "uniform", "rate": 900}),
    Way("`uniform`, latency 2 s", {"policy": "uniform", "latency": 2}, mode="ATLEAST_ONCE"),
    Way("`by-key` of users, rate 900/s", {"policy": "by-key", "key": "user", "rate": 900}),
    Way("dropping above 2 s of data", drops=True),
    Way("back pressure"),
)


def main() -> None:
    """Run each way at each load, and print a row for each."""
    found = _in_processes if sys.argv[1:] == ["--processes"] else _in_virtual_time
    print("| offered | way | count | sum | mean | top 10 | distinct users | p50, p99 late |")
    print("|---|---|---|---|---|---|---|---|")
    for load in LOADS:
        exact = _exact(load)
        for way in WAYS:
            print(f"| {load} x | {way.name} | {' | '.join(_cells(exact, found(load, way), way))} |", flush=True)


def _in_processes(load: int, way: Way) -> dict[str, Any]:
    arguments = ["--rate", str(load * CAPACITY), "--seconds", str(SECONDS), "--capacity", str(CAPACITY)]
    arguments += ["--mode", way.mode]
    arguments += ["--drop", "1"] if way.drops else []
    arguments += ["--shed", json.dumps(way.shed)] if way.shed else []
    with Trial("shed_trends", *arguments, engine=Engine(_WATERMARKS)) as trial:
        path = Path(trial.records.folder, "found.json")
        trial.wait_until(lambda _: path.exists(), SECONDS + 60)
        found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        trial.end()
    return found


def _in_virtual_time(load: int, way: Way) -> dict[str, Any]:
    """What is counted by the end of the time."""
    found = _Found()
    shedding = shedding_of({TOPOLOGY_SHED: way.shed} if way.shed else {})
    controller: KeepController | None = None
    if shedding is not None:
        rate, latency = shedding.rate_per_s, shedding.latency_s
        controller = RateController(rate) if rate is not None else LatencyController(latency or 0.0)
    by_key, chance = KeyChances(single=True), uniform_chances(1)
    free_s = followed_s = delay_before_s = 0.0
    offered = kept = 0
    for number, mention in enumerate(_module().mentions(load * CAPACITY * SECONDS)):
        due_s = number / (load * CAPACITY)
        if controller is not None and due_s - followed_s >= PERIOD_S:
            delay_s = max(0.0, free_s - due_s)
            left = kept - (delay_s - delay_before_s) * CAPACITY
            controller.follow(Offer(offered, due_s - followed_s, delay_s, left))
            followed_s, delay_before_s, offered, kept = due_s, delay_s, 0, 0
        offered += 1
        share = controller.share if controller is not None else 1.0
        position = by_key(mention[1]) if shedding is not None and shedding.key else chance()
        if position >= share or (way.drops and free_s - due_s > _DROPS_ABOVE_S):
            continue
        kept += 1
        free_s = max(free_s, due_s) + 1 / CAPACITY
        if free_s <= SECONDS:
            found.add(mention, 1 / share, free_s - due_s)
    return found.figures()


class _Found:
    """What the bolt counts."""

    def __init__(self) -> None:
        self.count = self.total = 0.0
        self.topics: defaultdict[str, float] = defaultdict(float)
        self.users: dict[int, float] = {}
        self.lates: list[float] = []

    def add(self, mention: tuple[str, int, float], weight: float, late_s: float) -> None:
        topic, user, length = mention
        self.count += weight
        self.total += weight * length
        self.topics[topic] += weight
        self.users[user] = min(weight, self.users.get(user, weight))
        self.lates.append(late_s)

    def figures(self) -> dict[str, Any]:
        """As the bolt of `shed_trends` writes them."""
        top = sorted(self.topics.items(), key=lambda each: -each[1])[:TOP]
        return {
            "count": self.count,
            "sum": self.total,
            "top": top,
            "users": sum(self.users.values()),
            "seen": len(self.users),
            "lates": sorted(self.lates),
        }


def _exact(load: int) -> dict[str, Any]:
    rows = list(_module().mentions(load * CAPACITY * SECONDS))
    return {
        "count": len(rows),
        "sum": sum(length for _, _, length in rows),
        "mean": fmean(length for _, _, length in rows),
        "top": Counter(topic for topic, _, _ in rows),
        "users": len({user for _, user, _ in rows}),
    }


def _cells(exact: dict[str, Any], found: dict[str, Any], way: Way) -> list[str]:
    by_key = way.shed is not None and "key" in way.shed  # else the weights are not those of users
    mean = found["sum"] / found["count"] if found["count"] else 0.0
    right = {topic for topic, _ in exact["top"].most_common(TOP)}
    of_top = [abs(count / exact["top"][topic] - 1) for topic, count in found["top"]]
    same = sum(topic in right for topic, _ in found["top"])
    lates = found["lates"]
    p50_s, p99_s = (lates[int(len(lates) * share)] for share in (0.5, 0.99))
    return [
        _error(found["count"], exact["count"]),
        _error(found["sum"], exact["sum"]),
        _error(mean, exact["mean"]),
        f"{same} of {TOP}, {100 * fmean(of_top):.1f} %",
        _error(found["users" if by_key else "seen"], exact["users"]),
        f"{p50_s:.1f} s, {p99_s:.1f} s",
    ]


def _error(found: float, exact: float) -> str:
    return f"{100 * (found / exact - 1):+.1f} %"


def _module() -> ModuleType:
    if str(TOPOLOGIES) not in sys.path:
        sys.path.append(str(TOPOLOGIES))
    return importlib.import_module("shed_trends")


if __name__ == "__main__":
    main()
