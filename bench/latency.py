"""Measure the latency of tuples at a given rate, from the time when each is due at the spout until the bolt has it."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from math import ceil

from bench.bench_kind import Bench
from bench.findings import Findings, Pace, median_row
from bench.job import LAST, MODES, Job
from bench.processes import waits_for_core
from bench.records import BenchError
from bench.trial import Trial

__all__ = ["PERCENTILES", "Latency", "percentile"]

_START_WITHIN_S = 60.0
_WAITED = "waits for a core"
PERCENTILES = (50.0, 90.0, 99.0, 99.9)


@dataclass(frozen=True)
class Latency(Bench):
    """The latency starts when a tuple is due, not when it is emitted, so a delayed spout hides nothing.

    Beside it is the time that the threads on the tuple path waited for a core: what other work on the machine adds.
    """

    name: str
    rate: int

    def run(self, pace: Pace) -> Findings:
        """See `Bench.run`."""
        found: defaultdict[tuple[str, str], list[float]] = defaultdict(list)
        for _ in range(max(1, pace.pairs // 2)):
            for mode in MODES:
                late_ms, waited_ms = self._late_ms(pace, mode)
                for each in PERCENTILES:
                    found[mode, f"p{each:g}"].append(percentile(late_ms, each))
                found[mode, "largest"].append(late_ms[-1])
                found[mode, _WAITED].append(waited_ms)
        findings = Findings()
        for (mode, name), values in found.items():
            unit = "ms/s" if name == _WAITED else "ms"
            findings.rows.append(median_row(self.name, name, unit, values, mode))
        return findings

    def _late_ms(self, pace: Pace, mode: str) -> tuple[list[float], float]:
        """The latency of each tuple, sorted, and the wait for a core in a second."""
        job = Job("low_throughput", ("--rate", str(self.rate))).in_mode(mode)
        with Trial(job.topology, *job.arguments, engine=pace.engine) as trial:
            trial.wait_until(lambda _: trial.records.has_begun(LAST, 1), _START_WITHIN_S)
            start_s = trial.wait(pace.warm_up_s)
            before = waits_for_core(trial.processes())
            end_s = trial.wait(pace.window_s)
            waited_s = waits_for_core(trial.processes()) - before
            trial.wait_for_note(LAST, 1, end_s)
            job.check(trial.records, trial.end())
            late_ms = sorted(
                late_s * 1e3 for due_s, late_s in trial.records.latencies(LAST) if start_s <= due_s < end_s
            )
        if len(late_ms) < 0.9 * self.rate * pace.window_s:
            msg = f"{self.name}: only {len(late_ms)} tuples were due in {pace.window_s:g} s at {self.rate}/s"
            raise BenchError(msg)
        return late_ms, 1e3 * waited_s / (end_s - start_s)


def percentile(ordered: list[float], per_cent: float) -> float:
    """Return the smallest value that at least `per_cent` per cent of the values do not exceed."""
    return ordered[max(0, ceil(len(ordered) * per_cent / 100) - 1)]
