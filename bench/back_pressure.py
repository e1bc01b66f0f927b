"""Measure a bolt that is far too slow: the growth of memory, and the rate after the bolt has recovered."""

from __future__ import annotations

from dataclasses import dataclass

from bench.bench_kind import Bench
from bench.findings import Findings, Pace, median_row
from bench.job import LAST, MODES, Job
from bench.processes import ProcessUse
from bench.trial import Trial

__all__ = ["BackPressure"]

_START_WITHIN_S = 60.0
_RECOVERY_FILE = "recovered"
_RECOVERY_S = 2.0


@dataclass(frozen=True)
class BackPressure(Bench):
    """The bolt accepts at most 10,000 tuples a second from a spout that makes millions; then it becomes fast."""

    name: str

    def run(self, pace: Pace) -> Findings:
        """See `Bench.run`."""
        findings = Findings()
        for mode in MODES:
            for (what, unit), value in self._figures(pace, Job("back_pressure").in_mode(mode)).items():
                findings.rows.append(median_row(self.name, what, unit, [value], mode))
        return findings

    @staticmethod
    def _figures(pace: Pace, job: Job) -> dict[tuple[str, str], float]:
        """Measure twice the window with the slow bolt, and one window with the fast bolt."""
        with Trial(job.topology, *job.arguments, engine=pace.engine) as trial:
            trial.wait_until(lambda _: trial.records.has_begun(LAST, 1), _START_WITHIN_S)
            slow_s = trial.wait(pace.warm_up_s)
            before = _largest(trial.processes())
            end_s = trial.wait(2 * pace.window_s)
            after = _largest(trial.processes())
            trial.wait_for_note(LAST, 1, end_s)  # so that no interval between two notes contains both rates
            trial.create_file(_RECOVERY_FILE)
            quick_s = trial.wait(_RECOVERY_S)
            done_s = trial.wait(pace.window_s)
            trial.wait_for_note(LAST, 1, done_s)
            counts = [trial.records.total_at(LAST, at_s) for at_s in (slow_s, end_s, quick_s, done_s)]
            checked = job.check(trial.records, trial.end())
        figures = {
            ("slow bolt", "tuples/s"): (counts[1] - counts[0]) / (end_s - slow_s),
            ("2 s after it recovered", "tuples/s"): (counts[3] - counts[2]) / (done_s - quick_s),
            ("counted and checked", "tuples"): float(checked),
        }
        for role, size in after.items():
            figures[f"{role} at the end of the slow time", "MiB resident"] = size
            figures[f"{role} growth in the slow time", "MiB resident"] = size - before[role]
        return figures


def _largest(uses: list[ProcessUse]) -> dict[str, float]:
    """Return MiB of the instances and the stream manager, where tuples could pile up."""
    return {each.role: each.resident_bytes / 2**20 for each in uses if each.instance or each.role == "stream manager"}
