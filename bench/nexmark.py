"""Measure the queries of Nexmark: pipelines on Heron in rows and in columns, and Structured Streaming, in turn."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

from bench.bench_kind import Bench
from bench.findings import Findings, Pace, median_row
from bench.records import BenchError
from bench.trial import TOPOLOGIES, Trial

__all__ = ["Nexmark"]

_ROOT = Path(__file__).parents[1]
_EXAMPLES = _ROOT / "examples" / "pipelines"
_BLOCK = 100_000  # events, of nexmark_replay
_WITHIN_S = 60.0
_ROWS, _COLUMNS, _COMPILED, _BY_HAND = "Heron, rows", "Heron, columns", "Spark, compiled", "PySpark by hand"
_ROUNDS: Mapping[str, int] = {_ROWS: 8, _COLUMNS: 40, _COMPILED: 6, _BY_HAND: 6}
"""How often the block is replayed in a run of the usual length, so that it takes two to five seconds."""
_IN_COLUMNS, _IN_PYSPARK = ("q0", "q1", "q2", "q5", "q7"), ("q1", "q2", "q5", "q7")


@dataclass(frozen=True)
class Nexmark(Bench):
    """All systems have two tasks of each step, and replay the same block of events, which is made before."""

    name: str
    queries: tuple[str, ...]

    def run(self, pace: Pace) -> Findings:
        """See `Bench.run`. The systems alternate; Spark warms up before."""
        findings = Findings()
        with tempfile.TemporaryDirectory() as blocks, _Spark(blocks) as spark:
            _write_blocks(blocks)
            for form in (_COMPILED, _BY_HAND):
                spark.rate("q1", form, 2)
            for query in self.queries:
                rates: defaultdict[str, list[float]] = defaultdict(list)
                for _ in range(pace.pairs):
                    for form in _forms(query):
                        rounds = max(1, round(pace.window_s / Pace().window_s * _ROUNDS[form]))
                        if form in (_COMPILED, _BY_HAND):
                            rates[form].append(spark.rate(query, form, rounds))
                        else:
                            rates[form].append(_on_heron(query, form, rounds, blocks, pace))
                findings.rows.extend(
                    median_row(self.name, f"{query}: {form}", "events/s", values) for form, values in rates.items()
                )
                findings.ratios.update(_ratios(query, rates))
        return findings


class _Spark:
    """The program `bench.nexmark_on_spark`, which stays, and is asked for each run."""

    def __init__(self, blocks: str) -> None:
        self._blocks = blocks

    def __enter__(self) -> _Spark:
        folders = [_ROOT, TOPOLOGIES, _EXAMPLES]
        path = os.pathsep.join([*map(str, folders), os.environ.get("PYTHONPATH", "")])
        self._errors = tempfile.TemporaryFile()
        self._process = subprocess.Popen(
            [sys.executable, "-c", f"from bench.nexmark_on_spark import main; main({self._blocks!r})"],
            env={**os.environ, "PYTHONPATH": path},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            text=True,
        )
        return self

    def rate(self, query: str, form: str, rounds: int) -> float:
        """Run a query.

        Raises:
            BenchError: when the program fails.
        """
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{query} {'compiled' if form == _COMPILED else 'by_hand'} {rounds}\n")
        self._process.stdin.flush()
        for line in self._process.stdout:
            if line.startswith("rate "):
                return float(line.split()[1])
        self._errors.seek(0)
        msg = f"{query} on Spark, {form}: the program failed: {self._errors.read().decode()[-800:]}"
        raise BenchError(msg)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            self._process.wait(_WITHIN_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._errors.close()


def _forms(query: str) -> list[str]:
    columns = [_COLUMNS] if query in _IN_COLUMNS else []
    return [_ROWS, *columns, _COMPILED, *([_BY_HAND] if query in _IN_PYSPARK else [])]


def _write_blocks(folder: str) -> None:
    path = os.pathsep.join([str(TOPOLOGIES), str(_EXAMPLES), os.environ.get("PYTHONPATH", "")])
    program = f"import pathlib, nexmark_replay; nexmark_replay.write_blocks(pathlib.Path({folder!r}))"
    subprocess.run([sys.executable, "-c", program], env={**os.environ, "PYTHONPATH": path}, check=True)


def _on_heron(query: str, form: str, rounds: int, blocks: str, pace: Pace) -> float:
    words = ("--query", query, "--form", form.rsplit(maxsplit=1)[-1], "--rounds", str(rounds), "--blocks", blocks)
    with Trial("nexmark_replay", *words, engine=pace.engine.with_path(_EXAMPLES)) as trial:
        trial.end()
        notes = {path.name: path.read_text(encoding="utf-8").split() for path in trial.records.folder.glob("*-*")}
    begins = [float(time_s) for name, (time_s, _) in notes.items() if name.startswith("begin-")]
    ends = [float(time_s) for name, (time_s, _) in notes.items() if name.startswith("end-")]
    if not begins or not ends or not sum(int(count) for _, count in notes.values()):
        msg = f"{query} on {form}: no results, or no notes: {sorted(notes)}"
        raise BenchError(msg)
    return rounds * _BLOCK / (max(ends) - min(begins))


def _ratios(query: str, rates: Mapping[str, list[float]]) -> dict[str, float]:
    middle = {form: statistics.median(values) for form, values in rates.items()}
    found = {f"nexmark.{query}.heron.vs_spark": middle[_ROWS] / middle[_COMPILED]}
    if _BY_HAND in middle:
        found[f"nexmark.{query}.spark.vs_hand"] = middle[_COMPILED] / middle[_BY_HAND]
    return found
