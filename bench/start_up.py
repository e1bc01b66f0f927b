"""Measure the time from the command to the first tuple at a bolt, and to the end of a run that has nothing to do."""

from __future__ import annotations

from dataclasses import dataclass

from bench.bench_kind import Bench
from bench.findings import Findings, Pace, median_row
from bench.job import Job
from bench.trial import Trial

__all__ = ["StartUp"]

_JOBS = (
    ("1 + 1 tasks", Job("simplified_word_count", ("--rounds", "1"))),
    ("9 tasks in 3 containers", Job("file_read_word_count", ("--rounds", "1", "--containers", "3"))),
)


@dataclass(frozen=True)
class StartUp(Bench):
    """Runs of one round each."""

    name: str

    def run(self, pace: Pace) -> Findings:
        """See `Bench.run`."""
        findings = Findings()
        for what, job in _JOBS:
            reports = [self._report(job, pace) for _ in range(pace.pairs)]
            first = [report["first_tuple_s"] for report in reports]
            whole = [report["elapsed_s"] for report in reports]
            findings.rows.append(median_row(self.name, f"{what}: start to first tuple", "s", first))
            findings.rows.append(median_row(self.name, f"{what}: start to end", "s", whole))
        return findings

    @staticmethod
    def _report(job: Job, pace: Pace) -> dict[str, float]:
        with Trial(job.topology, *job.arguments, engine=pace.engine) as trial:
            job.check(trial.records, trial.end())
            report = trial.report
        return {"first_tuple_s": report["first_tuple_s"], "elapsed_s": report["elapsed_s"]}
