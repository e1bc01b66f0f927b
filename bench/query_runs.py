"""One measured run of a query on Heron or on Flink: the same events, replayed from memory, to the last result."""

from __future__ import annotations

import json
import math
import os
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from bench.findings import Pace
from bench.peers.java import java_command
from bench.peers.systems import FLINK, FLINK_OPENS
from bench.records import BenchError
from bench.trial import Trial

__all__ = ["BLOCK", "QueryRun", "flink_query", "heron_query", "rounds_of"]

BLOCK = 200_000
"""Number of events in a block, as in topology-files/replay.py."""

_TASKS = 2
_WITHIN_S = 600.0


@dataclass(frozen=True, slots=True)
class QueryRun:
    """`rounds` blocks of events, processed at `per_s` events a second; the number of results, and their sum.

    `sum` is None where a system does not sum up.
    """

    rounds: int
    per_s: float
    results: int
    sum: int | None


def rounds_of(events_per_s: float, pace: Pace, block: int = BLOCK) -> int:
    """Return the number of blocks for a run of about the window of the pace, at a rate that is guessed."""
    return max(2, math.ceil(events_per_s * pace.window_s / block))


def heron_query(topology: str, words: tuple[str, ...], rounds: int, pace: Pace) -> QueryRun:
    """Run a topology between a `Replay` and `Tally` sinks.

    Raises:
        BenchError: when it fails, or has not noted its begin or end.
    """
    given = (*words, "--rounds", str(rounds), "--partitions", str(_TASKS))
    with Trial(topology, *given, engine=pace.engine) as trial:
        trial.end()
        folder = trial.records.folder
        begins = [float(path.read_text(encoding="ascii")) for path in folder.glob("begin-*")]
        ends = [path.read_text(encoding="ascii").split() for path in folder.glob("end-*")]
    if len(begins) != _TASKS or not ends:
        msg = f"{topology}: {len(begins)} of {_TASKS} sources have begun, and {len(ends)} sinks have ended"
        raise BenchError(msg)
    seconds = max(float(end_s) for end_s, _, _ in ends) - min(begins)
    results, total = (sum(int(end[place]) for end in ends) for place in (1, 2))
    return QueryRun(rounds, rounds * BLOCK / seconds, results, total)


def flink_query(query: str, rounds: int, block: int = BLOCK) -> QueryRun:
    """Run a query of ``FlinkQueries.java``.

    Raises:
        PeerUnavailableError: when Flink cannot be installed.
        BenchError: when the program fails.
    """
    folder = FLINK.prepare()
    with tempfile.TemporaryDirectory(prefix="hb-peer-") as home:
        command = java_command(
            "FlinkQueries", folder, Path(home, "classes"), query, block, rounds, _TASKS, opens=FLINK_OPENS
        )
        environment = {**os.environ, "HOME": home}
        try:
            ran = subprocess.run(
                command, capture_output=True, text=True, timeout=_WITHIN_S, cwd=home, env=environment, check=False
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            msg = f"flink {query} cannot be run: {error}"
            raise BenchError(msg) from error
    lines = [line for line in ran.stdout.splitlines() if line.startswith("{")]
    if ran.returncode or not lines:
        msg = f"flink {query} failed with {ran.returncode}: {(ran.stderr or ran.stdout).strip()[-1000:]}"
        raise BenchError(msg)
    found = json.loads(lines[-1])
    return QueryRun(rounds, found["per_s"], found["results"], found["sum"])
