"""Our word counts and those of other systems, in turn in one run, and the ratios that the README shows."""

from __future__ import annotations

import datetime
import importlib.metadata
import json
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path

from bench.findings import Pace
from bench.job import ATLEAST, ATMOST, Job
from bench.jvm_words import rate_in_java
from bench.machine import machine
from bench.peers.peer import Peer
from bench.peers.systems import MORE_PEERS, PEERS
from bench.records import BenchError
from bench.structured_streaming import VARIANTS, words_per_s
from bench.window import measure_heron

__all__ = ["GOALS", "OWN_VERSION", "Comparison", "Goal", "compare", "read_comparison", "run_in_turn"]

OWN_VERSION = "this tree"
_ROWS, _COLUMNS = Job("simplified_word_count"), Job("column_word_count")
_SPARK = {
    "spark, words in the JVM": "Structured Streaming, words of its own",
    "spark, words from python": "Structured Streaming, words from Python",
    "spark, counted in python": "Structured Streaming, words and counts in Python",
}
_BESIDE_STORM = ("Heron, in Java", "Heron, in Java, at least once")
_PYTHON = ("bytewax", "pathway", "spark, counted in python")


@dataclass(frozen=True, slots=True)
class Goal:
    """A ratio: a subject to the fastest of others; `must` and `aim` as numbers."""

    what: str
    subject: str
    others: tuple[str, ...]
    must: float
    aim: float


GOALS: Sequence[Goal] = (
    Goal("columns, at most once, to Flink's DataStream", "columns", ("flink",), 1.0, 3.0),
    Goal("columns, at least once, to the same", "columns, at least once", ("flink",), 0.9, 2.5),
    Goal("columns to our rows", "columns", ("rows",), 5.0, 10.0),
    Goal("columns to Structured Streaming, words in its JVM", "columns", ("spark, words in the JVM",), 1.0, 2.0),
    Goal("rows, at most once, to the fastest Python system with a running count", "rows", _PYTHON, 4.0, 6.0),
    Goal("rows, at least once, to Storm with acks", "rows, at least once", ("storm, acked",), 1.5, 2.5),
)


@dataclass(slots=True)
class Comparison:
    """Words a second of each subject, one for each round; and the systems that could not be measured, with reasons.

    Every measured subject has the same number of rates.
    """

    date: str
    machine: Mapping[str, object]
    rates: dict[str, list[float]] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=dict)
    missing: dict[str, str] = field(default_factory=dict)

    def ratios(self, goal: Goal) -> tuple[list[float], str] | None:
        """Return the ratio of each round, and the other system; None if none of the others was measured."""
        others = [each for each in goal.others if each in self.rates]
        if not others or goal.subject not in self.rates:
            return None
        fastest = max(others, key=lambda each: statistics.median(self.rates[each]))
        pairs = zip(self.rates[goal.subject], self.rates[fastest], strict=True)
        return [ours / theirs for ours, theirs in pairs], fastest

    def write(self, path: Path) -> None:
        """Write it as JSON."""
        path.write_text(json.dumps(asdict(self), indent=2) + "\n", encoding="utf-8")


def read_comparison(path: Path) -> Comparison | None:
    """Read what `Comparison.write` wrote; None if the file is missing."""
    if not path.exists():
        return None
    return Comparison(**json.loads(path.read_text(encoding="utf-8")))


def compare(pace: Pace, names: Sequence[str], say: Callable[[str], None]) -> Comparison:
    """Run every subject in turn, `pace.pairs` times; `names` are systems, or all. Storm brings our words in Java."""
    found = Comparison(datetime.datetime.now(datetime.UTC).date().isoformat(), machine())
    subjects = {**_ours(), **_others(found)}
    wanted = {*_ours(), *names, *(_BESIDE_STORM if "storm" in names else ())}
    usual = subjects.keys() - {peer.name for peer in MORE_PEERS}
    chosen = {
        name: run for name, run in subjects.items() if (wanted & {name, name.split(",")[0]} if names else name in usual)
    }
    run_in_turn(chosen, pace, found, say)
    return found


def run_in_turn(
    subjects: Mapping[str, Callable[[Pace], float]], pace: Pace, found: Comparison, say: Callable[[str], None]
) -> None:
    """Run each subject once in each of `pace.pairs` rounds.

    Another system that cannot be installed, fails or counts wrongly is left out, and its earlier rates are removed. The
    rest continues, and the reason is reported in place of figures.

    Raises:
        BenchError: when a run of Heron fails or counts wrongly.
    """
    for number in range(pace.pairs):
        for name, run in subjects.items():
            if name in found.missing:
                continue
            try:
                rate = run(pace)
            except BenchError as error:
                if name not in found.versions:  # our own
                    raise
                found.missing[name] = str(error)
                found.rates.pop(name, None)
                say(f"{name}: left out: {error}")
                continue
            found.rates.setdefault(name, []).append(rate)
            say(f"round {number + 1}: {name}: {rate / 1e6:.2f} million words/s")


def _ours() -> dict[str, Callable[[Pace], float]]:
    return {
        "rows": lambda pace: measure_heron(_ROWS.in_mode(ATMOST), pace).per_s,
        "rows, at least once": lambda pace: measure_heron(_ROWS.in_mode(ATLEAST), pace).per_s,
        "columns": lambda pace: measure_heron(_COLUMNS.in_mode(ATMOST), pace).per_s,
        "columns, at least once": lambda pace: measure_heron(_COLUMNS.in_mode(ATLEAST), pace).per_s,
    }


def _others(found: Comparison) -> dict[str, Callable[[Pace], float]]:
    runs: dict[str, Callable[[Pace], float]] = {}
    for peer in (*PEERS, *MORE_PEERS):
        name = peer.subject or peer.name
        found.versions[name] = peer.version
        runs[name] = partial(_rate, peer)
    for name, mode in zip(_BESIDE_STORM, (ATMOST, ATLEAST), strict=True):
        found.versions[name] = OWN_VERSION  # it is left out where there is no Java
        runs[name] = partial(rate_in_java, mode)
    for name, variant in _SPARK.items():
        found.versions[name] = importlib.metadata.version("pyspark")
        runs[name] = partial(words_per_s, variant=VARIANTS[variant])
    return runs


def _rate(peer: Peer, pace: Pace) -> float:
    return peer.run(pace).per_s
