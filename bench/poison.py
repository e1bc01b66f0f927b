"""Measure what replays cost where nothing fails, and what they cost where every hundredth record always fails."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from bench.bench_kind import Bench, alternate
from bench.findings import Findings, Pace, median_of_ratios, median_row
from bench.job import ATLEAST, LAST, Job
from bench.records import BenchError
from bench.trial import Trial
from bench.window import WindowUse, add_windows, ratios_of, use_in_window

__all__ = ["PoisonRecords"]

_START_WITHIN_S = 60.0
_WINDOW_S = 10.0  # many times the longest wait of a replay, so that as many records are given up as fail first
_FAILURES = 3 / 99  # of the poison, for each good record
_NONE, _REPLAY, _POISON = _SUBJECTS = ("without replays", "replays, nothing fails", "replays, 1 % always fails")
_ARGUMENTS = {_NONE: (), _REPLAY: ("--replay", "1"), _POISON: ("--replay", "1", "--poison", "1")}


@dataclass(frozen=True)
class PoisonRecords(Bench):
    """Counts the good records in a window. Runs alternate, because the speed of the machine drifts."""

    name: str

    def run(self, pace: Pace) -> Findings:
        """See `Bench.run`."""
        windows = alternate(_SUBJECTS, pace.pairs, partial(_window, pace))
        findings = Findings()
        for subject in _SUBJECTS:
            add_windows(findings, self.name, subject, windows[subject], ATLEAST)
        per_failure_us = [
            (poison.cpu_s - none.cpu_s) / _FAILURES
            for poison, none in zip(windows[_POISON], windows[_REPLAY], strict=True)
        ]
        findings.rows.append(median_row(self.name, "a failure", "CPU us", per_failure_us, ATLEAST))
        findings.ratios["poison.tuple.atleast.failure_in_good_records"] = median_of_ratios(
            per_failure_us, [each.cpu_s for each in windows[_REPLAY]]
        )
        findings.ratios.update(ratios_of("replay.tuple.atleast", windows[_REPLAY], windows[_NONE]))
        findings.ratios.update(ratios_of("poison.tuple.atleast", windows[_POISON], windows[_REPLAY]))
        return findings


def _window(pace: Pace, subject: str) -> WindowUse:
    job = Job("poison_records", _ARGUMENTS[subject])
    with Trial(job.topology, *job.arguments, engine=pace.engine) as trial:
        trial.wait_until(lambda _: trial.records.has_begun(LAST, 1), _START_WITHIN_S)
        trial.wait(pace.warm_up_s + 1.0)  # numpy is loaded, and the first records are given up
        found = use_in_window(trial, max(pace.window_s, _WINDOW_S), 1)
        report, good = trial.end(), job.compare(trial.records)
    failed, expected = report["words"]["failed"], round(good * _FAILURES) if subject == _POISON else 0
    if failed != expected:
        msg = f"{subject}: {failed} failures of {good} good records, expected {expected}"
        raise BenchError(msg)
    return found
