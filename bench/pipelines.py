"""Measure a pipeline against the same work written as a spout and bolts."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

from bench.bench_kind import Bench
from bench.findings import Findings, Pace, median_row
from bench.records import BenchError
from bench.trial import Trial

__all__ = ["Pipeline", "note_of"]

_ELEMENTS_PER_S = 500_000  # a first guess of the rate, so that a run takes about the time of the pace


@dataclass(frozen=True)
class Pipeline(Bench):
    """`work` is the argument of the topology; `key` names the ratio of the second form to the first."""

    name: str
    key: str
    work: str
    forms: tuple[str, str] = ("hand", "pipeline")
    per_s: int = _ELEMENTS_PER_S

    def run(self, pace: Pace) -> Findings:
        """See `Bench.run`. Forms alternate; each run processes the same elements to its end."""
        rates: defaultdict[str, list[float]] = defaultdict(list)
        counts: set[int] = set()
        for _ in range(pace.pairs):
            for form in self.forms:
                rate, count = self._measure(form, pace)
                rates[form].append(rate)
                counts.add(count)
        if len(counts) != 1:
            msg = f"{self.name}: the forms have different numbers of results: {sorted(counts)}"
            raise BenchError(msg)
        findings = Findings()
        for form, values in rates.items():
            findings.rows.append(median_row(self.name, form, "elements/s", values))
        pairs = zip(rates[self.forms[1]], rates[self.forms[0]], strict=True)
        findings.ratios[self.key] = sorted(one / other for one, other in pairs)[pace.pairs // 2]
        return findings

    def _measure(self, form: str, pace: Pace) -> tuple[float, int]:
        elements = round(pace.window_s * self.per_s)
        words = ("--work", self.work, "--form", form, "--elements", str(elements))
        with Trial("pipeline_forms", *words, engine=pace.engine) as trial:
            trial.end()
            begin_s, _ = note_of(trial, "begin")
            end_s, count = note_of(trial, "end")
        return elements / (end_s - begin_s), count


def note_of(trial: Trial, name: str) -> tuple[float, int]:
    """The time and the number that a topology has noted under a name."""
    time_s, count = (trial.records.folder / name).read_text(encoding="utf-8").split()
    return float(time_s), int(count)
