"""Measure the Yahoo streaming benchmark: a pipeline on Heron and on Spark, PySpark by hand, and Flink's DataStream."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from bench.bench_kind import Bench
from bench.findings import Findings, Pace, median_row
from bench.query_runs import QueryRun, flink_query, heron_query, rounds_of
from bench.records import BenchError
from bench.trial import TOPOLOGIES
from bench.yahoo_recount import recount

__all__ = ["Yahoo"]

_ROOT = Path(__file__).parents[1]
_WITHIN_S = 900.0
_ROWS, _COLUMNS, _FLINK = "Heron, rows", "Heron, columns", "Flink"
_COMPILED, _BY_HAND = "Spark, compiled", "PySpark, by hand"
_GUESSES = {_ROWS: 1e6, _COLUMNS: 16e6, _FLINK: 3e6}  # events a second
_SPARK_ROUNDS = 16
_RATIOS = {
    "columns_vs_flink": (_COLUMNS, _FLINK),
    "rows_vs_by_hand_on_spark": (_ROWS, _BY_HAND),
    "compiled_vs_by_hand_on_spark": (_COMPILED, _BY_HAND),
}


@dataclass(frozen=True)
class Yahoo(Bench):
    """Systems alternate; the results of each are compared with a recount."""

    name: str
    key: str

    def run(self, pace: Pace) -> Findings:
        """See `Bench.run`."""
        rates: defaultdict[str, list[float]] = defaultdict(list)
        for _ in range(pace.pairs):
            for system, guess in _GUESSES.items():
                found = _measure(system, rounds_of(guess, pace), pace)
                _check(system, found)
                rates[system].append(found.per_s)
            for system, rate in _on_spark().items():
                rates[system].append(rate)
        findings = Findings()
        for system, values in rates.items():
            findings.rows.append(median_row(self.name, system, "events/s", values))
        for name, (one, other) in _RATIOS.items():
            pairs = zip(rates[one], rates[other], strict=True)
            findings.ratios[f"{self.key}.{name}"] = statistics.median(ours / theirs for ours, theirs in pairs)
        return findings


def _measure(system: str, rounds: int, pace: Pace) -> QueryRun:
    if system == _FLINK:
        return flink_query("yahoo", rounds)
    return heron_query("yahoo_ads", ("--form", "rows" if system == _ROWS else "columns"), rounds, pace)


def _check(system: str, found: QueryRun) -> None:
    counts = recount()
    wanted = found.rounds * len(counts), found.rounds * sum(count * count for count in counts.values())
    if (found.results, found.sum) != wanted:
        msg = f"yahoo on {system}: {found.results} results with the sum {found.sum}, not {wanted[0]} with {wanted[1]}"
        raise BenchError(msg)


def _on_spark() -> Mapping[str, float]:
    """One run of each form on Spark, which checks its results itself."""
    path = os.pathsep.join([str(_ROOT), str(TOPOLOGIES), os.environ.get("PYTHONPATH", "")])
    ran = subprocess.run(
        [sys.executable, "-c", f"from bench.yahoo_on_spark import main; main({_SPARK_ROUNDS}, 1)"],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=_WITHIN_S,
        check=False,
    )
    rates = {form: float(rate) for form, rate in map(str.split, ran.stdout.splitlines())}
    if ran.returncode or len(rates) != 2:
        msg = f"yahoo: the program of the two forms on Spark failed: {ran.stderr.strip()[-500:]}"
        raise BenchError(msg)
    return {_COMPILED: rates["compiled"], _BY_HAND: rates["by_hand"]}
