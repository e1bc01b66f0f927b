"""Measure how much tracing one in 10,000 roots takes from the throughput of a topology.

That is less than by what one window differs from the next. One in 1,000 stops at ten times as many rows, of which as
many are traced: a task traces at most 20 a second.
"""

from __future__ import annotations

import random
from collections import defaultdict
from dataclasses import dataclass

from bench.bench_kind import Bench
from bench.findings import Findings, Pace
from bench.job import LAST, MODES, Job
from bench.trial import Trial
from bench.window import WindowUse, add_windows, ratios_of, use_in_window

__all__ = ["TraceCost"]

_START_WITHIN_S = 60.0
_BETWEEN_S = 1.0  # after a change: the plan has arrived
_ROUNDS = 4  # of each pair of the pace: a window differs by some percent from the next one
_ONE_IN = 10_000
_MORE = 1_000


@dataclass(frozen=True)
class TraceCost(Bench):
    """Windows of one run alternate: the setting is changed while the topology runs."""

    name: str
    job: Job

    def run(self, pace: Pace) -> Findings:
        """See `Bench.run`."""
        findings = Findings()
        for mode in MODES:
            windows = self._windows(self.job.in_mode(mode), pace)
            for one_in, found in windows.items():
                subject = f"one in {one_in:,} roots traced" if one_in else "nothing traced"
                add_windows(findings, self.name, subject, found, mode)
            findings.ratios.update(ratios_of(f"traces.tuple.{mode}", windows[_ONE_IN], windows[0]))
            findings.ratios.update(ratios_of(f"traces.tuple.{mode}.one_in_{_MORE}", windows[_MORE], windows[0]))
        return findings

    def _windows(self, job: Job, pace: Pace) -> dict[int, list[WindowUse]]:
        tasks, name = job.last_tasks(), job.definition().name
        windows: defaultdict[int, list[WindowUse]] = defaultdict(list)
        rounds = _ROUNDS * pace.pairs
        limit_s = int(_START_WITHIN_S + rounds * 3 * (pace.window_s + 5 * _BETWEEN_S) + 120)
        with Trial(job.topology, *job.arguments, engine=pace.engine, timeout_s=limit_s) as trial:
            trial.wait_until(lambda _: trial.records.has_begun(LAST, tasks), _START_WITHIN_S)
            trial.wait(pace.warm_up_s + job.warm_up_s())
            for number in range(rounds):
                settings = [0, _ONE_IN, _MORE]
                random.Random(number).shuffle(settings)  # none is always behind another
                for one_in in settings:
                    trial.command("update", name, "--runtime-config", f"topology.trace.one.in={one_in}")
                    trial.wait(_BETWEEN_S)
                    windows[one_in].append(use_in_window(trial, pace.window_s, tasks))
            job.check(trial.records, trial.end())
        return windows
