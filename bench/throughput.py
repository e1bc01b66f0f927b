"""Measure tuples a second and their cost, alternating with the null engine or another topology."""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from bench.bench_kind import Bench
from bench.findings import Findings, Pace, median_row
from bench.job import ATLEAST, ATMOST, MODES, Job
from bench.window import Measured, measure_heron
from bench.yardstick import measure_null, measure_user_code

__all__ = ["Throughput", "median_ratio"]

_RATE = "tuples/s"
_CPU = "CPU s/million tuples"


@dataclass(frozen=True)
class Throughput(Bench):
    """`key` is the prefix of the ratio names; `base` is the name and the job of another topology to compare with.

    In both modes the null engine and the base run at most once: without ids, anchors and acks.
    """

    name: str
    key: str
    job: Job
    modes: tuple[str, ...] = MODES
    null: bool = True
    base: tuple[str, Job] | None = None

    def run(self, pace: Pace) -> Findings:
        """See `Bench.run`. Runs alternate, because the speed of the machine drifts."""
        heron: defaultdict[str, list[Measured]] = defaultdict(list)
        others: defaultdict[str, list[float]] = defaultdict(list)
        for _ in range(pace.pairs):
            if self.null:
                others["null"].append(measure_null(self.job, pace))
            if self.base:
                others[self.base[0]].append(measure_heron(self.base[1], pace).per_s)
            for mode in self.modes:
                heron[mode].append(measure_heron(self.job.in_mode(mode), pace))
        findings = Findings()
        for name, rates in others.items():
            subject = "null engine" if name == "null" else name
            findings.rows.append(median_row(self.name, subject, _RATE, rates))
        for mode, runs in heron.items():
            self._add_rates(findings, mode, runs, others)
            self._add_processor_time(findings, mode, runs)
            if self.null:
                user_s = measure_user_code(self.job.in_mode(mode), pace)
                self._add_cost(findings, mode, runs, user_s, others["null"])
        if len(heron) == len(MODES):
            rates = [each.per_s for each in heron[ATMOST]]
            findings.ratios[f"{self.key}.tuple.acked_vs_unacked"] = median_ratio(heron[ATLEAST], rates)
        return findings

    def _add_rates(self, findings: Findings, mode: str, runs: list[Measured], others: dict[str, list[float]]) -> None:
        def add(subject: str, unit: str, values: list[float]) -> None:
            findings.rows.append(median_row(self.name, subject, unit, values, mode))

        add("heron", _RATE, [each.per_s for each in runs])
        add("counted and checked", "tuples", [each.checked for each in runs])
        add("other programs meanwhile", "cores", [each.other_cores for each in runs])
        for name, rates in others.items():
            findings.ratios[f"{self.key}.tuple.{mode}.vs_{name}"] = median_ratio(runs, rates)
        if self.null:
            per_tuple = statistics.median(each.wire_bytes for each in runs)
            findings.ratios[f"{self.key}.tuple.{mode}.link_bytes_per_tuple"] = per_tuple

    def _add_processor_time(self, findings: Findings, mode: str, runs: list[Measured]) -> None:
        def add(subject: str, values: list[float]) -> None:
            findings.rows.append(median_row(self.name, subject, _CPU, values, mode))

        for role in runs[0].cpu_s:
            used = [each.cpu_s.get(role, 0.0) for each in runs]
            if max(used) >= 0.001:
                add(f"{role} process", used)
        add("all processes", [sum(each.cpu_s.values()) for each in runs])

    def _add_cost(
        self, findings: Findings, mode: str, runs: list[Measured], user_s: float, null_rates: list[float]
    ) -> None:
        def add(subject: str, values: list[float]) -> None:
            findings.rows.append(median_row(self.name, subject, _CPU, values, mode))

        beyond = [sum(each.cpu_s.values()) - user_s for each in runs]
        add("user code alone", [user_s])
        add("all but user code", beyond)
        resident = [each.resident_bytes["stream manager"] / 2**20 for each in runs]
        findings.rows.append(median_row(self.name, "stream manager under load", "MiB resident", resident, mode))
        share = statistics.median(each.engine_share for each in runs)
        findings.ratios[f"{self.key}.tuple.{mode}.engine_share_of_cpu"] = share
        in_null_tuples = (each * rate / 1e6 for each, rate in zip(beyond, null_rates, strict=True))
        findings.ratios[f"{self.key}.tuple.{mode}.overhead_vs_null"] = statistics.median(in_null_tuples)


def median_ratio(runs: Sequence[Measured], rates: Sequence[float]) -> float:
    """Return the median of the ratios of the pairs of runs."""
    return statistics.median(each.per_s / rate for each, rate in zip(runs, rates, strict=True))
