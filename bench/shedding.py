"""Compare shedding with dropping and with back pressure: how wrong results are, and how late, by overload.

``python -m bench.shedding`` prints the table of docs/shedding.md. A bolt takes 1,000 mentions a second (it sleeps in
between, so the machine makes no difference), and the spout offers more of them for 20 s.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from types import ModuleType
from typing import Any

from bench.engine import Engine
from bench.trial import TOPOLOGIES, Trial

__all__ = ["main"]

CAPACITY, SECONDS, TOP = 1000, 20, 10
LOADS = (2, 10)
_WATERMARKS = ("heron.stmgr.high.watermark.bytes=65536", "heron.stmgr.low.watermark.bytes=32768")
"""So that back pressure and dropping begin within a second; by default it would take minutes of these small tuples."""


@dataclass(frozen=True, slots=True)
class Way:
    """A reaction to overload, with its name in the table."""

    name: str
    arguments: tuple[str, ...]


def _shed(**rule: object) -> tuple[str, ...]:
    return "--shed", json.dumps(rule)


WAYS = (
    Way("`uniform`, rate 900/s", _shed(policy="uniform", rate=900)),
    Way("`uniform`, latency 2 s", _shed(policy="uniform", latency=2)),
    Way("`by-key` of users, rate 900/s", _shed(policy="by-key", key="user", rate=900)),
    Way("dropping in the stream manager", ("--drop", "1")),
    Way("back pressure", ()),
)


def main() -> None:
    """Run each way at each load, and print a row for each."""
    print("| offered | way | count | sum | mean | top 10 | distinct users | p50, p99 late |")
    print("|---|---|---|---|---|---|---|---|")
    for load in LOADS:
        exact = _exact(load)
        for way in WAYS:
            cells = _cells(exact, _found(load, way))
            print(f"| {load} x | {way.name} | {' | '.join(cells)} |", flush=True)
    print(f"load of the machine: {os.getloadavg()[0]:.1f}", file=sys.stderr)


def _found(load: int, way: Way) -> dict[str, Any]:
    arguments = ("--rate", str(load * CAPACITY), "--seconds", str(SECONDS), "--capacity", str(CAPACITY))
    with Trial("shed_trends", *arguments, *way.arguments, engine=Engine(_WATERMARKS)) as trial:
        path = Path(trial.records.folder, "found.json")
        trial.wait_until(lambda _: path.exists(), SECONDS + 60)
        found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        trial.end()
    return found


def _exact(load: int) -> dict[str, Any]:
    rows = list(_module().mentions(load * CAPACITY * SECONDS))
    return {
        "count": len(rows),
        "sum": sum(length for _, _, length in rows),
        "mean": fmean(length for _, _, length in rows),
        "top": Counter(topic for topic, _, _ in rows),
        "users": len({user for _, user, _ in rows}),
    }


def _cells(exact: dict[str, Any], found: dict[str, Any]) -> list[str]:
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
        _error(found["users"], exact["users"]),
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
