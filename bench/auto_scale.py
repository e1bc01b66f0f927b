"""Measure how a health manager sizes a topology after its load has changed: steps, seconds, and tasks beyond need."""

from __future__ import annotations

import json
import math
import os
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from bench.bench_kind import Bench
from bench.findings import Findings, Pace, median_row
from bench.records import BenchError
from bench.trial import Trial

__all__ = ["AutoScale", "Step", "settled_s"]

_TOPOLOGY = "loaded_words"
_COST_S = {"split": 0.040, "last": 0.004}
_WORDS = 10  # in a line
_PER_LINE = {"split": 1, "last": _WORDS}
_WANTED = 0.85  # the utilisation for which `ds2` sizes

_INTERVAL_KEY = "topology.stateful.checkpoint.interval.seconds"
_INTERVAL_S = 2.0
_LOW, _HIGH = 15.0, 60.0  # lines/s
_WINDOW_S = 3.0
_FULL = 0.95
_QUIET_S = 20.0  # without a decision after this time, there will be none: a look-back window is 4 s
_TIMEOUT_S = 600
_POLL_S = 2.0


@dataclass(frozen=True, slots=True)
class Step:
    """What followed a change of the load: updates, seconds until the rate was full for good, tasks at rest."""

    steps: int
    settle_s: float
    tasks: dict[str, int]


@dataclass(frozen=True)
class AutoScale(Bench):
    """The load of the word count rises four-fold, and falls again, under each policy."""

    name: str
    cases: tuple[tuple[str, bool], ...] = (("ds2", False), ("ds2", True), ("dhalion", False))
    """The policies, and whether delivery is effectively once."""

    def run(self, pace: Pace) -> Findings:
        """See `Bench.run`."""
        findings = Findings()
        for policy, once in self.cases:
            up, down = self._measure(policy, pace, once=once)
            case = f"{policy}, effectively once" if once else policy
            for what, step, load in (("up", up, _HIGH), ("down", down, _LOW)):
                more = sum(step.tasks[each] - optimum(each, load) for each in _COST_S)
                for subject, unit, value in (
                    (f"{case}, load {what}: steps", "updates", step.steps),
                    (f"{case}, load {what}: until the rate is full", "s", step.settle_s),
                    (f"{case}, load {what}: tasks beyond the optimum", "tasks", more),
                ):
                    findings.rows.append(median_row(self.name, subject, unit, [float(value)]))
            key = f"autoscale.{policy}.once" if once else f"autoscale.{policy}"
            findings.ratios[f"{key}.steps"] = float(up.steps)
            findings.ratios[f"{key}.settle_s"] = up.settle_s
        return findings

    def _measure(self, policy: str, pace: Pace, *, once: bool) -> tuple[Step, Step]:
        settings: tuple[str, ...] = (
            "health.mode=act",
            f"health.policies=[{{driver: {policy}, period_s: 1, look_back_s: 4}}]",
            "health.cool_down_s=5",
            "health.effect_s=60",
            "health.least_confidence=0.3",
            "heron.stmgr.high.watermark.bytes=65536",
            "heron.stmgr.low.watermark.bytes=32768",
            "heron.link.window.bytes=65536",
        )
        if once:
            settings += ("topology.reliability.mode=EFFECTIVELY_ONCE", f"{_INTERVAL_KEY}={_INTERVAL_S:g}")
        engine = replace(pace.engine, settings=(*pace.engine.settings, *settings))
        with Trial(_TOPOLOGY, engine=engine, timeout_s=_TIMEOUT_S) as trial:
            _offer(trial, _LOW)
            trial.wait_until(lambda _: bool(_marks(trial.records.folder)), 60.0)
            _await_rest(trial, time.time())
            up = _step(trial, _HIGH)
            down = _step(trial, _LOW)
            report = trial.end()
            records = trial.records.folder
            sent = int((records / "sent").read_text(encoding="utf-8"))
            if once:
                state = sum(int(path.read_text(encoding="utf-8")) for path in records.glob("last-*.counted"))
                self._check(sent, state)
            else:
                done = sum(count for _, count in _marks(records))
                self._check(sent, report["split"]["emitted"], report["last"]["executed"], done)
        return up, down

    def _check(self, sent: int, *counts: int) -> None:
        """Compare the words that were sent with what arrived.

        Raises:
            BenchError: when a count differs.
        """
        if not sent or any(each != sent for each in counts):
            msg = f"{self.name}: {sent:,} words were sent, and {', '.join(f'{each:,}' for each in counts)} arrived"
            raise BenchError(msg)


def optimum(component: str, lines_per_s: float) -> int:
    """Return the smallest number of tasks that are useful for at most the wanted share of their time."""
    return max(1, math.ceil(lines_per_s * _PER_LINE[component] * _COST_S[component] / _WANTED - 1e-9))


def settled_s(marks: list[tuple[float, int]], start_s: float, end_s: float, rate: float) -> float:
    """Return the seconds after `start_s` from which on the rate was full until `end_s`.

    `marks` are moments and the words done since the mark before. The rate is that of windows of 3 s.
    """
    last_s = start_s
    at_s = start_s
    while at_s + _WINDOW_S <= end_s:
        done = sum(count for mark_s, count in marks if at_s <= mark_s < at_s + _WINDOW_S)
        if done < _FULL * rate * _WINDOW_S:
            last_s = at_s + _WINDOW_S
        at_s += _WINDOW_S / 6
    return last_s - start_s


def _step(trial: Trial, lines_per_s: float) -> Step:
    """Change the load, and wait until the health manager is at rest."""
    _offer(trial, lines_per_s)
    start_s, start_wall_s = time.monotonic(), time.time()
    decisions = _await_rest(trial, start_wall_s)
    end_s = time.monotonic()
    begun = [each for each in decisions if each["base"] and each["at_s"] >= start_wall_s]
    tasks = dict.fromkeys(_COST_S, 1)
    for each in decisions:
        if each["base"] and each["state"] != "abandoned":
            tasks |= each["action"]["parallelism"]
    rate = lines_per_s * _PER_LINE["last"]
    return Step(len(begun), settled_s(_marks(trial.records.folder), start_s, end_s, rate), tasks)


def _await_rest(trial: Trial, since_wall_s: float) -> list[dict[str, Any]]:
    """Wait until no decision is under way and none has been taken for a while; return all of them."""
    while True:
        trial.wait(_POLL_S)
        found = json.loads(trial.command("health", "AutoScale", "history", "--json"))["decisions"]
        begun = [each for each in found if each["base"]]
        newest_s = max([since_wall_s, *(each["at_s"] for each in begun)])
        if all(each["state"] != "started" for each in begun) and time.time() - newest_s > _QUIET_S:
            return list(found)


def _offer(trial: Trial, lines_per_s: float) -> None:
    path = trial.records.folder / "rate"
    unfinished = path.with_suffix(".new")
    unfinished.write_text(str(lines_per_s), encoding="utf-8")
    os.replace(unfinished, path)


def _marks(folder: Path) -> list[tuple[float, int]]:
    marks = []
    for path in folder.glob("last-*.done"):
        for line in path.read_text(encoding="utf-8").splitlines(keepends=True):
            if line.endswith("\n"):
                at_s, count = line.split()
                marks.append((float(at_s), int(count)))
    return sorted(marks)
