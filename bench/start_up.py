"""Measure the time from the command to the first tuple at a bolt, to the end of a run that has nothing to do, and of
`import heron.api`.
"""

from __future__ import annotations

import subprocess
from dataclasses import dataclass

from bench.bench_kind import Bench
from bench.findings import Findings, Pace, median_row
from bench.job import Job
from bench.trial import Trial
from heron.clock import monotonic_s

__all__ = ["StartUp"]

_JOBS = (
    ("1 + 1 tasks", Job("simplified_word_count", ("--rounds", "1"))),
    ("9 tasks in 3 containers", Job("file_read_word_count", ("--rounds", "1", "--containers", "3"))),
)
_IMPORT = "from time import perf_counter as now; start = now(); import heron.api; print(now() - start)"
_IMPORTS = 3  # for each run, because one import is short


@dataclass(frozen=True)
class StartUp(Bench):
    """Runs of one round each, and imports, each in a new interpreter."""

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
        imports = [self._import_s(pace) * 1e3 for _ in range(_IMPORTS * pace.pairs)]
        findings.rows.append(median_row(self.name, "import heron.api", "ms", imports))
        bare = [self._bare_s(pace) * 1e3 for _ in range(_IMPORTS * pace.pairs)]
        findings.rows.append(median_row(self.name, "interpreter without imports", "ms", bare))
        return findings

    @staticmethod
    def _bare_s(pace: Pace) -> float:
        begun_s = monotonic_s()
        subprocess.run([pace.engine.python, "-c", "pass"], check=True)
        return monotonic_s() - begun_s

    @staticmethod
    def _import_s(pace: Pace) -> float:
        done = subprocess.run([pace.engine.python, "-c", _IMPORT], capture_output=True, text=True, check=True)
        return float(done.stdout)

    @staticmethod
    def _report(job: Job, pace: Pace) -> dict[str, float]:
        with Trial(job.topology, *job.arguments, engine=pace.engine) as trial:
            job.check(trial.records, trial.end())
            report = trial.report
        return {"first_tuple_s": report["first_tuple_s"], "elapsed_s": report["elapsed_s"]}
