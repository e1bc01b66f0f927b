"""Measure how much a capture takes from the throughput of a topology, while it captures.

The aim is 2 %: a task spends at most a hundredth of its time, and the rest is the sleep of two threads.
"""

from __future__ import annotations

import random
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from bench.bench_kind import Bench
from bench.findings import Findings, Pace
from bench.job import LAST, MODES, Job
from bench.records import BenchError
from bench.trial import Trial
from bench.window import WindowUse, add_windows, ratios_of, use_in_window

__all__ = ["CaptureCost"]

_START_WITHIN_S = 60.0
_WRITTEN_WITHIN_S = 180.0  # millions of rows
_BETWEEN_S = 1.0  # after a capture: what it held is free
_SETTLE_S = 4.0  # a command starts, asks the tasks and is idle until they answer
_ROUNDS = 4  # of each pair of the pace: a window differs by some percent from the next one
_OPTIONS = {"no capture": None, "values": (), "shape": ("--shape",)}


@dataclass(frozen=True)
class CaptureCost(Bench):
    """Windows of one run alternate: a capture begins before its window and ends behind it."""

    name: str
    job: Job

    def run(self, pace: Pace) -> Findings:
        """See `Bench.run`."""
        findings = Findings()
        for mode in MODES:
            windows = self._windows(self.job.in_mode(mode), pace)
            for subject, found in windows.items():
                add_windows(findings, self.name, subject, found, mode)
            for subject in ("values", "shape"):
                findings.ratios.update(ratios_of(f"capture.{mode}.{subject}", windows[subject], windows["no capture"]))
        return findings

    def _windows(self, job: Job, pace: Pace) -> dict[str, list[WindowUse]]:
        tasks, name = job.last_tasks(), job.definition().name
        windows: defaultdict[str, list[WindowUse]] = defaultdict(list)
        rounds = _ROUNDS * pace.pairs
        limit_s = int(_START_WITHIN_S + rounds * 3 * (pace.window_s + 5 * _SETTLE_S) + 120)
        with (
            TemporaryDirectory() as folder,
            Trial(job.topology, *job.arguments, engine=pace.engine, timeout_s=limit_s) as trial,
        ):
            trial.wait_until(lambda _: trial.records.has_begun(LAST, tasks), _START_WITHIN_S)
            trial.command("update", name, "--runtime-config", "topology.inspect.tuples=true")
            trial.wait(pace.warm_up_s + job.warm_up_s())
            capture = (
                "capture",
                name,
                "--out",
                str(Path(folder, "load")),
                "--seconds",
                f"{pace.window_s + _SETTLE_S:g}",
            )
            for number in range(rounds):
                subjects = list(_OPTIONS)
                random.Random(number).shuffle(subjects)  # none is always behind another
                for subject in subjects:
                    options = _OPTIONS[subject]
                    trial.wait(_BETWEEN_S)
                    if options is None:
                        windows[subject].append(use_in_window(trial, pace.window_s, tasks))
                        continue
                    with trial.running(*capture, *options) as command:
                        trial.wait(_SETTLE_S)
                        windows[subject].append(use_in_window(trial, pace.window_s, tasks))
                        if command.wait(_WRITTEN_WITHIN_S):
                            msg = f"heron {' '.join(capture)} has failed"
                            raise BenchError(msg)
            job.check(trial.records, trial.end())
        return windows
