"""Measure the time until words are counted, at a given rate: on a Spark cluster, and by Structured Streaming."""

from __future__ import annotations

import statistics
from collections import defaultdict
from dataclasses import dataclass

from bench.bench_kind import Bench
from bench.findings import Findings, Pace, median_row
from bench.job import LAST, Job
from bench.latency import percentile
from bench.records import BenchError
from bench.spark_home import CLUSTER, SparkHome, spark_home
from bench.structured_streaming import lateness_s
from bench.submission import Submission

__all__ = ["SparkLatency"]

_START_WITHIN_S = 90.0
_PERCENTILES = (50.0, 99.0)


@dataclass(frozen=True)
class SparkLatency(Bench):
    """The latency of each word starts when it is due and ends when it is counted."""

    name: str
    rate: int

    def run(self, pace: Pace) -> Findings:
        """See `Bench.run`. Runs of both alternate."""
        found: defaultdict[str, list[float]] = defaultdict(list)
        ratios: list[float] = []
        with spark_home() as home:
            for _ in range(pace.pairs):
                ours = sorted(self._ours_ms(home, pace))
                theirs = sorted(1e3 * each for each in lateness_s(pace, self.rate))
                for subject, late_ms in (("heron on Spark", ours), ("Structured Streaming", theirs)):
                    for each in _PERCENTILES:
                        found[f"{subject}, p{each:g}"].append(percentile(late_ms, each))
                ratios.append(percentile(ours, 99.0) / percentile(theirs, 99.0))
        findings = Findings()
        for subject, values in found.items():
            findings.rows.append(median_row(self.name, subject, "ms", values))
        findings.ratios["spark.latency.p99.vs_structured_streaming"] = statistics.median(ratios)
        return findings

    def _ours_ms(self, home: SparkHome, pace: Pace) -> list[float]:
        job = Job("paced_word_count", ("--rate", str(self.rate)))
        with Submission(home.folder, CLUSTER, job, pace.engine) as run:
            run.wait_until(lambda _: run.records.has_begun(LAST, 1), _START_WITHIN_S)
            start_s = run.wait(2 * pace.warm_up_s)
            end_s = run.wait(pace.window_s)
            run.wait_for_note(LAST, 1, end_s)
            run.end()
            late_ms = [late_s * 1e3 for due_s, late_s in run.records.latencies(LAST) if start_s <= due_s < end_s]
        if len(late_ms) < 0.9 * self.rate * pace.window_s:
            msg = f"{self.name}: only {len(late_ms)} words were due in {pace.window_s:g} s at {self.rate}/s"
            raise BenchError(msg)
        return late_ms
