"""Measure Scribe in: a collector of Heron, against a loop written by hand with the same parser that only counts.

Both are given the same load by another process. Processor time is compared too, of the process that has the sockets:
on two cores the other processes of a topology take the time that its rate would need.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from time import monotonic, sleep

import psutil

from bench.bench_kind import Bench, alternate
from bench.findings import Findings, Pace, median_of_ratios, median_row
from bench.job import ATLEAST, ATMOST, LAST, Job
from bench.processes import cpu_s
from bench.records import BenchError, Records
from bench.trial import Trial
from bench.window import use_in_window
from heron_connector_scribe import announced

__all__ = ["ScribeIn"]

_START_WITHIN_S = 60.0
_LOOK_S = 0.02
_LOOP, _COLUMNS = "loop", "atleast.columns"
_JOB = Job("scribe_in")
_COLLECTORS = {
    ATMOST: _JOB.in_mode(ATMOST),
    ATLEAST: _JOB.in_mode(ATLEAST),
    _COLUMNS: replace(_JOB, arguments=("--columns", "1")).in_mode(ATLEAST),
}


@dataclass(frozen=True, slots=True)
class _Use:
    """Messages a second, and processor microseconds of the collector's process for each."""

    per_s: float
    cpu_us: float


@dataclass(frozen=True)
class ScribeIn(Bench):
    """Runs alternate: the loop, and the topology ``scribe_in`` in both modes; at least once also in columns."""

    name: str

    def run(self, pace: Pace) -> Findings:
        """See `Bench.run`."""
        found = alternate((_LOOP, *_COLLECTORS), pace.pairs, partial(_measure, pace))
        findings = Findings()
        for subject, uses in found.items():
            label = (
                "collector in columns" if subject == _COLUMNS else "collector" if subject != _LOOP else "loop by hand"
            )
            mode = ATLEAST if subject in {ATLEAST, _COLUMNS} else ATMOST
            findings.rows.append(median_row(self.name, label, "messages/s", [each.per_s for each in uses], mode))
            findings.rows.append(median_row(self.name, label, "CPU us/message", [each.cpu_us for each in uses], mode))
        for subject in _COLLECTORS:
            for key, figure in (("vs_loop", "per_s"), ("cpu_vs_loop", "cpu_us")):
                one, loop = ([getattr(each, figure) for each in found[name]] for name in (subject, _LOOP))
                findings.ratios[f"scribe.in.{subject}.{key}"] = median_of_ratios(one, loop)
        return findings


def _measure(pace: Pace, subject: str) -> _Use:
    if subject == _LOOP:
        return _loop(pace)
    job = _COLLECTORS[subject]
    with Trial(job.topology, *job.arguments, engine=pace.engine) as trial:
        folder = trial.records.folder / "collectors"
        trial.wait_until(lambda _: folder.exists() and bool(announced(folder)), _START_WITHIN_S)
        ((host, port),) = announced(folder)
        with _running("load", f"{host}:{port}"):
            trial.wait_until(lambda _: trial.records.has_begun(LAST, 1), _START_WITHIN_S)
            trial.wait(pace.warm_up_s + job.warm_up_s())
            use = use_in_window(trial, pace.window_s, 1)
    return _Use(use.per_s, use.cores["lines"] / use.per_s * 1e6)


def _loop(pace: Pace) -> _Use:
    with tempfile.TemporaryDirectory() as name:
        folder, records = Path(name), Records(Path(name))
        with _running("collect", name) as collector:
            _wait_for(lambda: (folder / "port").exists() and (folder / "port").read_text(encoding="utf-8"))
            port = (folder / "port").read_text(encoding="utf-8")
            with _running("load", f"127.0.0.1:{port}"):
                sleep(pace.warm_up_s)
                start_s, before_s = monotonic(), cpu_s(collector)
                sleep(pace.window_s)
                end_s, after_s = monotonic(), cpu_s(collector)
                _wait_for(lambda: records.last_note_s(LAST, 1) > end_s)
            messages = records.total_at(LAST, end_s) - records.total_at(LAST, start_s)
    return _Use(messages / (end_s - start_s), (after_s - before_s) / messages * 1e6)


@contextmanager
def _running(*words: str) -> Iterator[psutil.Process]:
    with subprocess.Popen([sys.executable, "-m", "bench.scribe_programs", *words]) as process:
        try:
            yield psutil.Process(process.pid)
        finally:
            process.kill()


def _wait_for(holds: Callable[[], object]) -> None:
    deadline_s = monotonic() + _START_WITHIN_S
    while not holds():
        if monotonic() > deadline_s:
            msg = f"the loop by hand did not count within {_START_WITHIN_S:g} s"
            raise BenchError(msg)
        sleep(_LOOK_S)
