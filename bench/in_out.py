"""Measure logs in and out: pipelines at least once, against a loop written by hand with the same client."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Literal

from bench.bench_kind import Bench, alternate
from bench.findings import Findings, Pace, median_of_ratios, median_row
from bench.job import ATLEAST
from bench.log_servers import Dlog, Kafka, LogServer
from bench.pipelines import note_of
from bench.records import BenchError
from bench.trial import Trial
from heron_testing_servers.install import ServerNotInstalledError

__all__ = ["InOut"]

_SUBJECTS = ("loop by hand", "pipeline", "pipeline in columns")


@dataclass(frozen=True)
class InOut(Bench):
    """Runs alternate. Each one reads the same log to its end, or writes as many records to a log of its own.

    The time is that from the first record until every record is counted, or is in the cluster. Who writes has written
    one record before: a connection, or a JVM, is there.
    """

    name: str
    kind: type[Kafka | Dlog]
    way: Literal["in", "out"]

    def run(self, pace: Pace) -> Findings:
        """See `Bench.run`.

        Raises:
            BenchError: when a run loses records, or counts them twice.
        """
        records = round(pace.window_s * self.kind.records_per_s)
        with tempfile.TemporaryDirectory() as folder:
            try:
                server = self.kind(Path(folder))
            except ServerNotInstalledError as error:
                raise BenchError(str(error)) from error
            server.server.start()
            try:
                filled = self._filled(server, records) if self.way == "in" else ""
                found = alternate(_SUBJECTS, pace.pairs, partial(self._measure, pace, server, filled, records))
            finally:
                server.server.kill()
        findings = Findings()
        for subject, rates in found.items():
            findings.rows.append(median_row(self.name, subject, "records/s", rates, ATLEAST))
        loop, *pipelines = _SUBJECTS
        for subject, form in zip(pipelines, ("atleast", "atleast.columns"), strict=True):
            key = f"{self.kind.name}.{self.way}.{form}.vs_loop"
            findings.ratios[key] = median_of_ratios(found[subject], found[loop])
        return findings

    def _filled(self, server: LogServer, records: int) -> str:
        name = server.make()
        server.fill(name, records)
        return name

    def _measure(self, pace: Pace, server: LogServer, filled: str, records: int, subject: str) -> float:
        name = filled or server.make()
        if subject == _SUBJECTS[0]:
            rate = self._loop(server, self.way, name, records)
        else:
            form = "columns" if subject.endswith("columns") else "records"
            rate = self._pipeline(pace, form, server, name, records)
        if self.way == "out" and (there := server.count(name)) != records + 1:  # also the first one
            msg = f"{self.name}: {there} records are there after {records + 1} were written"
            raise BenchError(msg)
        return rate

    def _loop(self, server: LogServer, way: str, name: str, records: int) -> float:
        words = (way, server.name, *server.words, name, str(records))
        run = subprocess.run(
            [sys.executable, "-m", "bench.hand_loops", *words], capture_output=True, text=True, check=False
        )
        if run.returncode != 0:
            msg = f"{self.name}: the loop by hand failed: {run.stderr[-2000:]}"
            raise BenchError(msg)
        return float(run.stdout)

    def _pipeline(self, pace: Pace, form: str, server: LogServer, name: str, records: int) -> float:
        words = ("--form", form, "--way", self.way, "--records", str(records), server.name, *server.words, name)
        with Trial("log_records", *words, engine=pace.engine) as trial:
            trial.end()
            begin_s, _ = note_of(trial, "begin")
            end_s, count = note_of(trial, "end")
        if self.way == "in" and count != records:
            msg = f"{self.name}: {count} of {records} records were counted"
            raise BenchError(msg)
        return records / (end_s - begin_s)
