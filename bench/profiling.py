"""Profile a topology: processor time by process, by part of the work, and by function.

The operating system counts the time of each thread. Samples (`bench/sampling`) divide the time of the main threads of
instances and stream managers.
"""

from __future__ import annotations

import json
import tempfile
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from time import monotonic

from bench.findings import Findings, Pace, median_row
from bench.job import LAST, Job
from bench.parts import GATEWAY, OTHER, USER, ZMQ, part_of
from bench.processes import ThreadUse, threads_of
from bench.records import BenchError
from bench.throughput import Throughput
from bench.trial import Trial

__all__ = ["ProcessProfile", "Profile", "profile"]

_START_WITHIN_S = 60.0
_NEW_INTERPRETERS = "heron.executor.process.start=exec"  # a new interpreter begins the samples of its process
_SAMPLING = Path(__file__).resolve().parent / "sampling"


@dataclass(slots=True)
class ProcessProfile:
    """Processor seconds per million tuples of all processes of a role, by part and by function."""

    parts: defaultdict[str, float] = field(default_factory=lambda: defaultdict(float))
    functions: defaultdict[str, float] = field(default_factory=lambda: defaultdict(float))

    def add(self, part: str, used_s: float, function: str = "") -> None:
        """Add seconds to a part, and to a function if it is known."""
        self.parts[part] += used_s
        if function:
            self.functions[function] += used_s


Profile = dict[str, ProcessProfile]
"""Profiles by role."""


def profile(bench: Throughput, mode: str, pace: Pace) -> tuple[float, Profile]:
    """Run the bench once. Return the tuples a second, which sampling reduces a little, and the profile.

    Raises:
        BenchError: when the run fails, or a process has left no samples.
    """
    job = bench.job.in_mode(mode)
    with tempfile.TemporaryDirectory(prefix="hb-samples-") as folder:
        engine = pace.engine.with_path(_SAMPLING, HERON_BENCH_SAMPLES=folder)
        engine = replace(engine, settings=(*engine.settings, _NEW_INTERPRETERS))
        sampled = replace(pace, engine=engine)
        return _profile(job, sampled, Path(folder))


def findings_of(bench: Throughput, mode: str, roles: Profile) -> Findings:
    """Return a row for each part of each role."""
    findings = Findings()
    for role, found in roles.items():
        for part, used_s in found.parts.items():
            row = median_row(bench.name, f"{role}: {part}", "CPU s/million tuples", [used_s], mode)
            findings.rows.append(row)
    return findings


def _profile(job: Job, pace: Pace, folder: Path) -> tuple[float, Profile]:
    tasks = job.last_tasks()
    with Trial(job.topology, *job.arguments, engine=pace.engine) as trial:
        trial.wait_until(lambda _: trial.records.has_begun(LAST, tasks), _START_WITHIN_S)
        trial.wait(pace.warm_up_s + job.warm_up_s())
        start_s, before = monotonic(), threads_of(trial.processes())
        trial.wait(pace.window_s)
        end_s, after = monotonic(), threads_of(trial.processes())
        trial.wait_for_note(LAST, tasks, end_s)
        tuples = trial.records.total_at(LAST, end_s) - trial.records.total_at(LAST, start_s)
        job.check(trial.records, trial.end())
    roles: Profile = defaultdict(ProcessProfile)
    for thread_id, now in after.items():
        used_s = (now.cpu_s - (before[thread_id].cpu_s if thread_id in before else 0.0)) / (tuples / 1e6)
        _divide(roles[now.role], now, used_s, folder, (start_s, end_s))
    return tuples / (end_s - start_s), roles


def _divide(into: ProcessProfile, thread: ThreadUse, used_s: float, folder: Path, window: tuple[float, float]) -> None:
    if thread.name.startswith("ZMQ"):
        into.add(ZMQ, used_s)
    elif not thread.main:
        into.add(GATEWAY, used_s)
    elif not thread.on_tuple_path:
        into.add(OTHER, used_s)
    else:
        samples = _samples(folder / f"{thread.pid}.json", window)
        if not samples:
            msg = f"{thread.role}, process {thread.pid} has left no samples"
            raise BenchError(msg)
        per_second = used_s / sum(each_s for each_s, _, _ in samples)
        for each_s, filename, function in samples:
            name = "" if part_of(filename, function) == USER else f"{Path(filename).name} {function}"
            into.add(part_of(filename, function), each_s * per_second, name)


def _samples(path: Path, window: tuple[float, float]) -> Sequence[tuple[float, str, str]]:
    if not path.exists():
        return ()
    start_s, end_s = window
    lines = json.loads(path.read_text(encoding="utf-8"))
    return [(used_s, *place) for at_s, used_s, place in lines if start_s <= at_s < end_s]
