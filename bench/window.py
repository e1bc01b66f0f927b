"""Measure throughput and processor time over a window while a topology runs with real processes."""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from time import monotonic

from bench.findings import Findings, Pace, median_row
from bench.job import ATMOST, LAST, Job
from bench.machine import OtherPrograms
from bench.processes import ProcessUse
from bench.trial import Trial
from bench.wire import bytes_per_tuple

__all__ = ["Measured", "WindowUse", "add_windows", "measure_heron", "ratios_of", "use_in_window", "used_between"]

_START_WITHIN_S = 60.0


@dataclass(frozen=True, slots=True)
class Measured:
    """`per_s` tuples a second at the last bolt; processor seconds per million of these, by role of the process.

    `resident_bytes` are the largest at the end of the window. `checked` is the number of tuples that were counted and
    compared. `other_cores` are the cores that unrelated programs used. `wire_bytes` are per tuple.
    """

    per_s: float
    cpu_s: dict[str, float]
    engine_roles: frozenset[str]
    resident_bytes: dict[str, int]
    checked: int
    other_cores: float
    wire_bytes: float

    @property
    def engine_share(self) -> float:
        """Processor time of all processes except the instances, as a fraction of the total."""
        return sum(self.cpu_s[role] for role in self.engine_roles) / sum(self.cpu_s.values())


@dataclass(frozen=True, slots=True)
class WindowUse:
    """`per_s` tuples a second at the last bolt, and the processor seconds of all processes per million of these.

    Other programs take processors and so change the first. A machine whose speed varies changes both. `cores` are the
    processors that the processes of each role used.
    """

    per_s: float
    cpu_s: float
    cores: Mapping[str, float]


def use_in_window(trial: Trial, window_s: float, tasks: int) -> WindowUse:
    """Measure a window of a run that goes on."""
    start_s, before = monotonic(), trial.processes()
    trial.wait(window_s)
    end_s, after = monotonic(), trial.processes()
    trial.wait_for_note(LAST, tasks, end_s)
    tuples = trial.records.total_at(LAST, end_s) - trial.records.total_at(LAST, start_s)
    used_s, took_s = used_between(before, after), end_s - start_s
    cores = {role: seconds / took_s for role, seconds in used_s.items()}
    return WindowUse(tuples / took_s, sum(used_s.values()) / (tuples / 1e6), cores)


def add_windows(findings: Findings, bench: str, subject: str, windows: Sequence[WindowUse], mode: str = ATMOST) -> None:
    """Add the rows of alternating windows."""
    findings.rows.append(median_row(bench, subject, "tuples/s", [each.per_s for each in windows], mode))
    findings.rows.append(median_row(bench, subject, "CPU s/million tuples", [each.cpu_s for each in windows], mode))


def ratios_of(key: str, windows: Sequence[WindowUse], others: Sequence[WindowUse]) -> dict[str, float]:
    """The medians over pairs of windows: ``KEY.vs_off`` of the rate, ``KEY.tuples_per_cpu_s.vs_off`` of the work."""
    pairs = list(zip(windows, others, strict=True))
    return {
        f"{key}.vs_off": statistics.median(one.per_s / other.per_s for one, other in pairs),
        f"{key}.tuples_per_cpu_s.vs_off": statistics.median(other.cpu_s / one.cpu_s for one, other in pairs),
    }


def measure_heron(job: Job, pace: Pace) -> Measured:
    """Run the job, measure it after the warm-up, and check its counts at the end.

    Raises:
        BenchError: when the job does not run to its end, or counts wrongly.
    """
    tasks = job.last_tasks()
    with Trial(job.topology, *job.arguments, engine=pace.engine) as trial:
        trial.wait_until(lambda _: trial.records.has_begun(LAST, tasks), _START_WITHIN_S)
        trial.wait(pace.warm_up_s + job.warm_up_s())
        others = OtherPrograms()
        start_s, before = monotonic(), trial.processes()
        trial.wait(pace.window_s)
        end_s, after = monotonic(), trial.processes()
        used_s = used_between(before, after)
        other_cores = others.cores(sum(used_s.values()))
        trial.wait_for_note(LAST, tasks, end_s)
        tuples = trial.records.total_at(LAST, end_s) - trial.records.total_at(LAST, start_s)
        checked = job.check(trial.records, trial.end())
        wire_bytes = bytes_per_tuple(trial.metric_files(), end_s, lambda at_s: trial.records.total_at(LAST, at_s))
    return Measured(
        tuples / (end_s - start_s),
        {role: seconds / (tuples / 1e6) for role, seconds in used_s.items()},
        frozenset(each.role for each in after if not each.instance),
        _resident(after),
        checked,
        other_cores,
        wire_bytes,
    )


def used_between(before: list[ProcessUse], after: list[ProcessUse]) -> dict[str, float]:
    """Return processor seconds by role."""
    earlier = {each.pid: each.cpu_s for each in before}
    used: defaultdict[str, float] = defaultdict(float)
    for each in after:
        used[each.role] += each.cpu_s - earlier.get(each.pid, 0.0)
    return used


def _resident(uses: list[ProcessUse]) -> dict[str, int]:
    largest: dict[str, int] = {}
    for each in uses:
        largest[each.role] = max(each.resident_bytes, largest.get(each.role, 0))
    return largest
