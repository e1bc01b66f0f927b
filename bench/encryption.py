"""Measure the cost of encryption: a word count between two containers, with and without it."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, replace
from pathlib import Path

from bench.bench_kind import Bench
from bench.findings import Findings, Pace, median_row
from bench.job import MODES, Job
from bench.throughput import median_ratio
from bench.window import Measured, measure_heron

__all__ = ["Encryption"]

_CPU = "CPU s/million tuples"
_PLAIN_LINKS = Path(__file__).resolve().parent / "plain_links"


@dataclass(frozen=True)
class Encryption(Bench):
    """`job` has its spout in one container and its bolt in another."""

    name: str
    key: str
    job: Job

    def run(self, pace: Pace) -> Findings:
        """See `Bench.run`. Runs with and without encryption alternate, because the speed of the machine drifts."""
        plain_pace = replace(pace, engine=pace.engine.with_path(_PLAIN_LINKS))
        encrypted: defaultdict[str, list[Measured]] = defaultdict(list)
        plain: defaultdict[str, list[Measured]] = defaultdict(list)
        for _ in range(pace.pairs):
            for mode in MODES:
                job = self.job.in_mode(mode)
                plain[mode].append(measure_heron(job, plain_pace))
                encrypted[mode].append(measure_heron(job, pace))
        findings = Findings()
        for subject, by_mode in (("without encryption", plain), ("heron", encrypted)):
            for mode, runs in by_mode.items():
                rates, cpu_s = [each.per_s for each in runs], [sum(each.cpu_s.values()) for each in runs]
                findings.rows.append(median_row(self.name, subject, "tuples/s", rates, mode))
                findings.rows.append(median_row(self.name, f"{subject}, all processes", _CPU, cpu_s, mode))
        for mode, runs in encrypted.items():
            rates = [each.per_s for each in plain[mode]]
            findings.ratios[f"{self.key}.tuple.{mode}.vs_unencrypted"] = median_ratio(runs, rates)
        return findings
