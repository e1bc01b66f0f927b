"""Measure words a second on a Spark cluster, compared with the local scheduler and with Structured Streaming."""

from __future__ import annotations

import statistics
from collections import defaultdict
from dataclasses import dataclass

from bench.bench_kind import Bench
from bench.findings import Findings, Pace, median_row
from bench.job import LAST, Job
from bench.machine import OtherPrograms
from bench.spark_home import CLUSTER, HERE, SparkHome, spark_home
from bench.structured_streaming import VARIANTS, words_per_s
from bench.submission import Submission
from bench.window import used_between
from heron.clock import monotonic_s

__all__ = ["SparkWordCount"]

_START_WITHIN_S = 90.0
_RATE = "tuples/s"
_KEY = "spark.wordcount.tuple.atmost"


@dataclass(frozen=True, slots=True)
class _Rate:
    """Words a second, processor seconds per million words by role, and the cores that other programs used."""

    per_s: float
    cpu_s: dict[str, float]
    other_cores: float
    checked: int


@dataclass(frozen=True)
class SparkWordCount(Bench):
    """`job` has its spout in one container and its bolt in another. Counts are compared with the sent words."""

    name: str
    job: Job

    def run(self, pace: Pace) -> Findings:
        """See `Bench.run`. Runs alternate, because the speed of the machine drifts."""
        ours: defaultdict[str, list[_Rate]] = defaultdict(list)
        theirs: defaultdict[str, list[float]] = defaultdict(list)
        with spark_home() as home:
            for _ in range(pace.pairs):
                for profile in (HERE, CLUSTER):
                    ours[profile].append(self._rate(home, profile, pace))
                for name, variant in VARIANTS.items():
                    theirs[name].append(words_per_s(pace, variant))
        findings = Findings()
        self._add_ours(findings, ours)
        on_spark = [each.per_s for each in ours[CLUSTER]]
        findings.ratios[f"{_KEY}.vs_local"] = _median_ratio(on_spark, [each.per_s for each in ours[HERE]])
        for name, rates in theirs.items():
            findings.rows.append(median_row(self.name, name, _RATE, rates))
            findings.ratios[f"{_KEY}.vs_{_key(name)}"] = _median_ratio(on_spark, rates)
        return findings

    def _rate(self, home: SparkHome, profile: str, pace: Pace) -> _Rate:
        tasks = self.job.last_tasks()
        with Submission(home.folder, profile, self.job, pace.engine) as run:
            run.wait_until(lambda _: run.records.has_begun(LAST, tasks), _START_WITHIN_S)
            run.wait(2 * pace.warm_up_s)
            others = OtherPrograms()
            start_s, before = monotonic_s(), run.processes()
            run.wait(pace.window_s)
            end_s, after = monotonic_s(), run.processes()
            used_s = used_between(before, after)
            other_cores = others.cores(sum(used_s.values()))
            run.wait_for_note(LAST, tasks, end_s)
            tuples = run.records.total_at(LAST, end_s) - run.records.total_at(LAST, start_s)
            checked = run.end()
        cpu_s = {role: seconds / (tuples / 1e6) for role, seconds in used_s.items()}
        return _Rate(tuples / (end_s - start_s), cpu_s, other_cores, checked)

    def _add_ours(self, findings: Findings, ours: dict[str, list[_Rate]]) -> None:
        for profile, runs in ours.items():
            subject = {HERE: "heron, local scheduler", CLUSTER: "heron on Spark"}[profile]

            def add(what: str, unit: str, values: list[float], subject: str = subject) -> None:
                findings.rows.append(median_row(self.name, f"{subject}{what}", unit, values))

            add("", _RATE, [each.per_s for each in runs])
            add(": counted and checked", "tuples", [float(each.checked) for each in runs])
            add(": other programs meanwhile", "cores", [each.other_cores for each in runs])
            for role in sorted(set().union(*(each.cpu_s for each in runs))):
                used = [each.cpu_s.get(role, 0.0) for each in runs]
                if max(used) >= 0.001:
                    add(f": {role}", "CPU s/million tuples", used)


def _median_ratio(ours: list[float], theirs: list[float]) -> float:
    return statistics.median(one / two for one, two in zip(ours, theirs, strict=True))


def _key(name: str) -> str:
    return "_".join(name.lower().replace(",", "").split())
