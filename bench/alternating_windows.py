"""Measure how much something takes from the throughput of a topology, in alternating windows of one run."""

from __future__ import annotations

import random
from abc import abstractmethod
from collections import defaultdict
from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import ClassVar

from bench.bench_kind import Bench
from bench.findings import Findings, Pace
from bench.job import LAST, MODES, Job
from bench.trial import Trial
from bench.window import WindowUse, add_windows, ratios_of, use_in_window

__all__ = ["AlternatingWindows"]

_START_WITHIN_S = 60.0
_ROUNDS = 4  # of each pair of the pace: a window differs by some percent from the next one


@dataclass(frozen=True)
class AlternatingWindows(Bench):
    """A round has a window of each of the `subjects`, which come with the key of their ratio to the first one.

    `{mode}` in a key is the delivery mode. `around_s` are the seconds that a window takes at most besides its own.
    """

    subjects: ClassVar[Mapping[str, str]]
    around_s: ClassVar[float]

    name: str
    job: Job

    @abstractmethod
    def during(self, subject: str, trial: Trial, topology: str, pace: Pace) -> AbstractContextManager[None]:
        """Return what a window of a subject is measured in."""

    def prepare(self, trial: Trial, topology: str) -> None:  # most need nothing
        """Prepare a run that has begun."""

    def run(self, pace: Pace) -> Findings:
        """See `Bench.run`."""
        findings = Findings()
        for mode in MODES:
            windows = self._windows(self.job.in_mode(mode), pace)
            base = windows[next(iter(self.subjects))]
            for subject, key in self.subjects.items():
                add_windows(findings, self.name, subject, windows[subject], mode)
                if key:
                    findings.ratios.update(ratios_of(key.format(mode=mode), windows[subject], base))
        return findings

    def _windows(self, job: Job, pace: Pace) -> dict[str, list[WindowUse]]:
        tasks, topology = job.last_tasks(), job.definition().name
        windows: defaultdict[str, list[WindowUse]] = defaultdict(list)
        rounds = _ROUNDS * pace.pairs
        limit_s = int(_START_WITHIN_S + rounds * len(self.subjects) * (pace.window_s + self.around_s) + 120)
        with Trial(job.topology, *job.arguments, engine=pace.engine, timeout_s=limit_s) as trial:
            trial.wait_until(lambda _: trial.records.has_begun(LAST, tasks), _START_WITHIN_S)
            self.prepare(trial, topology)
            trial.wait(pace.warm_up_s + job.warm_up_s())
            for number in range(rounds):
                subjects = list(self.subjects)
                random.Random(number).shuffle(subjects)  # none is always behind another
                for subject in subjects:
                    with self.during(subject, trial, topology, pace):
                        windows[subject].append(use_in_window(trial, pace.window_s, tasks))
            job.check(trial.records, trial.end())
        return windows
