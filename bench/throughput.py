"""Tuples a second at the last bolt, in turn with the null engine or another topology, and what they cost."""

from __future__ import annotations

import statistics
from collections import defaultdict
from dataclasses import dataclass

from bench.bench_kind import Bench
from bench.findings import Findings, Pace, median_row
from bench.job import Job
from bench.window import Measured, measure_heron
from bench.yardstick import measure_null, measure_user_code

__all__ = ["Throughput"]

_RATE = "tuples/s"
_CPU = "CPU s/million tuples"


@dataclass(frozen=True)
class Throughput(Bench):
    """`key` begins the names of its ratios; `base` is another job to compare with, and what to call it."""

    name: str
    key: str
    job: Job
    null: bool = True
    base: tuple[str, Job] | None = None

    def run(self, pace: Pace) -> Findings:
        """`Bench.run`: so many times one after the other, as the machine's pace drifts."""
        heron: list[Measured] = []
        others: defaultdict[str, list[float]] = defaultdict(list)
        for _ in range(pace.pairs):
            if self.null:
                others["null"].append(measure_null(self.job, pace))
            if self.base:
                others[self.base[0]].append(measure_heron(self.base[1], pace).per_s)
            heron.append(measure_heron(self.job, pace))
        findings = Findings()
        findings.rows.append(median_row(self.name, "heron", _RATE, [each.per_s for each in heron]))
        for name, rates in others.items():
            subject = "null engine" if name == "null" else name
            findings.rows.append(median_row(self.name, subject, _RATE, rates))
            pairs = zip(heron, rates, strict=True)
            ratio = statistics.median(each.per_s / rate for each, rate in pairs)
            findings.ratios[f"{self.key}.tuple.atmost.vs_{name}"] = ratio
        if self.null:
            self._add_cost(findings, heron, measure_user_code(self.job, pace))
        findings.rows.append(median_row(self.name, "counted and checked", "tuples", [each.checked for each in heron]))
        others_cores = [each.other_cores for each in heron]
        findings.rows.append(median_row(self.name, "other programs meanwhile", "cores", others_cores))
        return findings

    def _add_cost(self, findings: Findings, heron: list[Measured], user_s: float) -> None:
        roles = heron[0].cpu_s
        for role in roles:
            used = [each.cpu_s.get(role, 0.0) for each in heron]
            if max(used) >= 0.001:
                findings.rows.append(median_row(self.name, f"{role} process", _CPU, used))
        total = [sum(each.cpu_s.values()) for each in heron]
        findings.rows.append(median_row(self.name, "user code alone", _CPU, [user_s]))
        findings.rows.append(median_row(self.name, "all but user code", _CPU, [each - user_s for each in total]))
        share = statistics.median(each.engine_share for each in heron)
        findings.ratios[f"{self.key}.tuple.atmost.engine_share_of_cpu"] = share
        resident = [each.resident_bytes["stream manager"] / 2**20 for each in heron]
        findings.rows.append(median_row(self.name, "stream manager under load", "MiB resident", resident))
