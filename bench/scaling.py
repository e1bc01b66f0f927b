"""Measure how the throughput of one word count changes with the number of its tasks, and of its containers."""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

from bench.bench_kind import Bench
from bench.findings import Findings, Pace, median_row
from bench.job import Job
from bench.window import measure_heron

__all__ = ["Scaling", "over_containers", "over_tasks"]

_TASKS = (1, 2, 4, 8, 16)
_CONTAINERS = (1, 2, 4, 8)
_OF_CONTAINERS = 8  # spouts, and bolts


@dataclass(frozen=True)
class Scaling(Bench):
    """`jobs` are the same work, divided more and more; the first is what the others are compared with."""

    name: str
    key: str
    jobs: Mapping[str, Job]

    def run(self, pace: Pace) -> Findings:
        """See `Bench.run`. The jobs run in turn."""
        rates: defaultdict[str, list[float]] = defaultdict(list)
        for _ in range(pace.pairs):
            for subject, job in self.jobs.items():
                rates[subject].append(measure_heron(job, pace).per_s)
        findings = Findings()
        first = next(iter(rates.values()))
        for subject, measured in rates.items():
            findings.rows.append(median_row(self.name, subject, "tuples/s", measured))
            pairs = zip(measured, first, strict=True)
            findings.ratios[f"{self.key}.{subject.replace(' ', '_')}"] = statistics.median(a / b for a, b in pairs)
        return findings


def over_tasks() -> Scaling:
    """Return 1 + 1 to 16 + 16 tasks in one container."""
    jobs = {
        f"{2 * each} tasks": Job("simplified_word_count", ("--spouts", str(each), "--bolts", str(each)))
        for each in _TASKS
    }
    return Scaling("ScalingTasks", "scaling.tasks", jobs)


def over_containers() -> Scaling:
    """Return 8 + 8 tasks in one container to eight."""
    tasks = ("--spouts", str(_OF_CONTAINERS), "--bolts", str(_OF_CONTAINERS))
    jobs = {
        f"{each} containers": Job("simplified_word_count", (*tasks, "--containers", str(each))) for each in _CONTAINERS
    }
    return Scaling("ScalingContainers", "scaling.containers", jobs)
