"""The benchmarks: what they conclude from what was written down, and that one runs."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from bench.latency import percentile
from bench.records import BenchError, CountOverTime, Records

ROOT = Path(__file__).resolve().parents[1]


def test_a_count_between_two_notes_lies_on_the_line_between_them() -> None:
    """A window begins and ends between two ticks, and its rate must not depend on where."""
    counts = CountOverTime((10.0, 12.0), (100, 300))
    assert counts.at(11.0) == 200
    assert counts.at(12.0) == 300


def test_a_count_after_the_last_note_is_refused() -> None:
    """A bolt that has stopped noting would otherwise look like one that has stopped counting."""
    with pytest.raises(BenchError, match="no count at"):
        CountOverTime((10.0,), (100,)).at(10.5)


@pytest.mark.parametrize(
    ("rounds", "counted", "right"),
    [
        ((2, 1), ({"a": 3}, {"b": 6}), True),
        ((2, 1), ({"a": 3}, {"b": 5}), False),
        ((2, 1), ({"a": 3, "c": 1}, {"b": 6}), False),
        ((), ({},), False),
    ],
    ids=["right", "lost", "invented", "nothing sent"],
)
def test_counts_are_compared_with_what_was_sent(
    tmp_path: Path, rounds: tuple[int, ...], counted: tuple[dict[str, int], ...], right: bool
) -> None:
    """A throughput of wrong counts is no throughput."""
    for component, words in (("words", rounds), ("last", counted)):
        for task, word in enumerate(words):
            (tmp_path / f"{component}-{task}.json").write_text(json.dumps(word))
    records = Records(tmp_path)
    if right:
        assert records.check("words", "last", {"a": 1, "b": 2}) == 9
    else:
        with pytest.raises(BenchError):
            records.check("words", "last", {"a": 1, "b": 2})


def test_a_percentile_is_a_value_that_was_measured() -> None:
    """Nothing between two values is invented, and the last one is the largest."""
    values = [float(each) for each in range(1, 101)]
    assert (percentile(values, 50), percentile(values, 99), percentile(values, 99.9)) == (50, 99, 100)


def test_a_quick_bench_counts_right_and_writes_its_rows(tmp_path: Path) -> None:
    """Real processes and the null engine in turn: what every figure rests on. How fast it is says nothing here."""
    out = tmp_path / "results.json"
    command = [sys.executable, "-m", "bench", "SimplifiedWordCount", "--quick", "--out", str(out)]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout + result.stderr
    document = json.loads(out.read_text())
    assert document["ratios"]["wordcount.tuple.atmost.vs_null"] > 0
    assert {"heron", "null engine"} <= {row["subject"] for row in document["rows"]}
