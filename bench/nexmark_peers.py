"""Measure queries of Nexmark: pipelines on Heron against Flink's DataStream, in turn."""

from __future__ import annotations

import os
import pickle
import statistics
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.bench_kind import Bench
from bench.findings import Findings, Pace, median_row
from bench.nexmark_answers import ANSWERS, Answer
from bench.query_runs import QueryRun, flink_query, rounds_of
from bench.records import BenchError
from bench.trial import TOPOLOGIES, Trial

__all__ = ["NexmarkPeers", "check"]

_EXAMPLES = Path(__file__).parents[1] / "examples" / "pipelines"
_BLOCK = 100_000  # events, of nexmark_replay: one window
_ROWS, _COLUMNS, _FLINK = "Heron, rows", "Heron, columns", "Flink"
_GUESSES = {_ROWS: 0.8e6, _COLUMNS: 6e6, _FLINK: 3e6}  # events a second
_ONLY_ROWS = ("q8",)


@dataclass(frozen=True)
class NexmarkPeers(Bench):
    """Every system replays the same block of events, which is made before; results are compared with a recount."""

    name: str
    queries: tuple[str, ...]

    def run(self, pace: Pace) -> Findings:
        """See `Bench.run`."""
        findings = Findings()
        with tempfile.TemporaryDirectory() as blocks:
            block = _block(Path(blocks))
            for query in self.queries:
                rates: defaultdict[str, list[float]] = defaultdict(list)
                for _ in range(pace.pairs):
                    for system, guess in _GUESSES.items():
                        if system == _COLUMNS and query in _ONLY_ROWS:
                            continue
                        rounds = rounds_of(guess, pace, _BLOCK)
                        found = _measure(system, query, rounds, blocks, pace)
                        check(f"{query} on {system}", found, ANSWERS[query](block, rounds))
                        rates[system].append(found.per_s)
                findings.rows.extend(
                    median_row(self.name, f"{query}: {system}", "events/s", values) for system, values in rates.items()
                )
                findings.ratios.update(_ratios(query, rates))
        return findings


def _measure(system: str, query: str, rounds: int, blocks: str, pace: Pace) -> QueryRun:
    if system == _FLINK:
        return flink_query(query, rounds, _BLOCK)
    words = ("--query", query, "--form", system.rsplit(maxsplit=1)[-1], "--rounds", str(rounds), "--blocks", blocks)
    with Trial("nexmark_replay", *words, engine=pace.engine.with_path(_EXAMPLES)) as trial:
        trial.end()
        notes = {path.name: path.read_text(encoding="utf-8").split() for path in trial.records.folder.glob("*-*")}
    begins = [float(time_s) for name, (time_s, _) in notes.items() if name.startswith("begin-")]
    ends = [(float(time_s), int(count)) for name, (time_s, count) in notes.items() if name.startswith("end-")]
    if not begins or not ends:
        msg = f"{query} on {system}: no begin or no end was noted: {sorted(notes)}"
        raise BenchError(msg)
    seconds = max(end_s for end_s, _ in ends) - min(begins)
    return QueryRun(rounds, rounds * _BLOCK / seconds, sum(count for _, count in ends), None)


def check(what: str, found: QueryRun, wanted: Answer) -> None:
    """Compare the results of a system with a recount.

    Raises:
        BenchError: when their number differs, or their sum, where the system sums up.
    """
    results, total = wanted
    if found.results != results or found.sum not in (None, total):
        msg = f"{what}: {found.results} results with the sum {found.sum}, not {results} with {total}"
        raise BenchError(msg)


def _block(folder: Path) -> Sequence[Any]:
    """Make the block of all systems in this folder, and return its events."""
    path = os.pathsep.join([str(TOPOLOGIES), str(_EXAMPLES), os.environ.get("PYTHONPATH", "")])
    program = f"import pathlib, nexmark_replay; nexmark_replay.write_blocks(pathlib.Path({str(folder)!r}))"
    subprocess.run([sys.executable, "-c", program], env={**os.environ, "PYTHONPATH": path}, check=True)
    if str(_EXAMPLES) not in sys.path:  # the pickles name the module of the events
        sys.path.insert(0, str(_EXAMPLES))
    parts = [pickle.loads(each.read_bytes()) for each in folder.glob("rows-*.pickle")]  # noqa: S301  # our own file
    return [event for part in parts for event in part]


def _ratios(query: str, rates: Mapping[str, Sequence[float]]) -> dict[str, float]:
    return {
        f"nexmark.{query}.{system.rsplit(maxsplit=1)[-1]}.vs_flink": statistics.median(
            ours / theirs for ours, theirs in zip(rates[system], rates[_FLINK], strict=True)
        )
        for system in (_ROWS, _COLUMNS)
        if system in rates
    }
