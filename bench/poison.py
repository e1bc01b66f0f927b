"""Measure what replays cost where nothing fails, and what they cost where every hundredth record always fails."""

from __future__ import annotations

import json
from collections import defaultdict
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
_SETTLE_S = 1.0  # after a change: the roots that failed before are settled
_FAILURES = 3 / 99  # of the poison, for each good record
_NONE, _REPLAY, _POISON = _SUBJECTS = ("without replays", "replays, nothing fails", "replays, 1 % always fails")
_WINDOWS = {(): (_NONE, _NONE), ("--replay", "1"): (_REPLAY, _POISON, _POISON, _REPLAY)}  # by the arguments of a run


@dataclass(frozen=True)
class PoisonRecords(Bench):
    """Counts the good records in windows. Runs alternate, and in the run with replays windows with and without poison.

    The speed of the machine changes less from one window to the next than from one run to the next.
    """

    name: str

    def run(self, pace: Pace) -> Findings:
        """See `Bench.run`."""
        windows: defaultdict[str, list[WindowUse]] = defaultdict(list)
        for runs in alternate([*_WINDOWS], pace.pairs, partial(_run, pace)).values():
            for subject, found in (each for run in runs for each in run):
                windows[subject].append(found)
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


def _run(pace: Pace, arguments: tuple[str, ...]) -> list[tuple[str, WindowUse]]:
    """The subjects and windows of a run."""
    job, found = Job("poison_records", arguments).in_mode(ATLEAST), list[tuple[str, WindowUse]]()
    with Trial(job.topology, *job.arguments, engine=pace.engine) as trial:
        trial.wait_until(lambda _: trial.records.has_begun(LAST, 1), _START_WITHIN_S)
        trial.wait(pace.warm_up_s + job.warm_up_s())
        poison = trial.records.folder / "poison"
        for subject in _WINDOWS[arguments]:
            if subject == _POISON:
                poison.touch()
            else:
                poison.unlink(missing_ok=True)
            trial.wait(_SETTLE_S)
            found.append((subject, use_in_window(trial, pace.window_s, 1)))
        report, raised = trial.end(), json.loads((trial.records.folder / "raised").read_text(encoding="utf-8"))
        job.compare(trial.records)
    if report["words"]["failed"] != raised or bool(raised) != bool(arguments):
        msg = f"{arguments}: {report['words']['failed']} failures, but the bolt raised {raised} times"
        raise BenchError(msg)
    return found
