"""The load of a running topology, captured and replayed with real processes."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest

from heron_load_replay.plain_rows import read_plain

if TYPE_CHECKING:
    from heron_testing.heron_run import HeronRun
    from heron_testing.sandbox import Sandbox

P99_MS = 2000
"""Milliseconds: one task exceeds it by far, and two do not on a machine that stands still for a second."""


@pytest.mark.matrix
def test_a_replay_has_the_tuples_and_the_skew_of_its_capture(sandbox: Sandbox) -> None:
    """Values need a permission and shapes do not; a replay of either counts what the file has, open and closed."""
    run = sandbox.start("captured.py")
    run.until((run.out / "flows").exists, "words at the bolts")
    values, shape = (sandbox.root / name for name in ("values.parquet", "shape.parquet"))
    check_mistakes(sandbox, values)
    sandbox.output_of("update", "captured", "--runtime-config", "words:topology.inspect.tuples=true")
    sandbox.output_of("capture", "captured", "--seconds", "2", "--out", str(values))
    text = sandbox.output_of("capture", "captured", "--seconds", "2", "--out", str(shape), "--shape", "--json")
    (run.out / "stop").touch()
    run.wait()
    description = json.loads(text)
    assert (description["shape"], list(description["spouts"]), description["after_limit"]) == (True, ["words"], 0)

    counts, hashed = counts_of(values), counts_of(shape)
    assert len(counts) == len(hashed) == 7
    assert set(counts) == {f"word {number}" for number in range(7)}
    assert not set(hashed) & set(counts)
    assert {values for _, values in tuples_of(shape)} == {(word, "x" * 20) for word in hashed}

    opened = replayed(sandbox, values, "--speed", "4x")
    assert opened == counts
    assert replayed(sandbox, shape, "--closed", "20") == hashed
    assert replayed(sandbox, values, "--open", "2000", "--set", "topology.reliability.mode=ATMOST_ONCE") == counts


@pytest.mark.matrix
def test_a_size_meets_its_objective_under_the_load_and_fewer_tasks_do_not(sandbox: Sandbox) -> None:
    """60 words a second, and 25 ms for each: two tasks or, on a busy machine, three. One task falls behind."""
    run = sandbox.start("captured.py", args=("--words", "200", "--pause", "0.167"))
    run.until((run.out / "flows").exists, "words at the bolts")
    file = sandbox.root / "shape.parquet"
    sandbox.output_of("capture", "captured", "--seconds", "20", "--out", str(file), "--shape")
    (run.out / "stop").touch()
    run.wait()
    assert sandbox.programs is not None
    program = str(sandbox.programs / "captured.py")
    words = ("--", "--out", str(run.out), "--wait", "0.025", "--tasks")
    sized = sandbox.start_command("size", str(file), program, "--p99", str(P99_MS), *words, "5")
    sized.wait(150.0)
    assert sized.process.poll() == 0, sized.all_output
    advice = re.search(r"tasks: count ([23]); their work keeps ([\d.]+) cores busy; checked by a second", sized.stdout)
    assert advice is not None, sized.all_output
    assert 1.2 < float(advice[2]) < 2.5
    found = re.search(rf"p99 expected ([\d.]+) ms, measured ([\d.]+) ms, wanted {P99_MS} ms", sized.stdout)
    assert found is not None, sized.all_output
    expected_ms, measured_ms = map(float, found.groups())
    assert expected_ms <= 0.9 * P99_MS
    assert measured_ms <= P99_MS
    report = sandbox.root / "report.json"
    fewer = sandbox.start_command("replay", str(file), program, "--report", str(report), *words, "1")
    fewer.wait()
    assert json.loads(report.read_text())["latency_s"]["p99"] > 2 * P99_MS / 1e3, fewer.all_output


def check_mistakes(sandbox: Sandbox, file: Path) -> None:
    """Nothing is written, and the message says what to do."""
    refused = sandbox.output_of("capture", "captured", "--seconds", "1", "--out", str(file), code=2)
    assert "topology.inspect.tuples of component 'words' is false" in refused
    unknown = sandbox.output_of("capture", "no-such", "--seconds", "1", "--out", str(file), code=2)
    assert "topology 'no-such' is not running" in unknown
    assert not file.exists()
    file.write_text("no Parquet")
    damaged = sandbox.output_of("replay", str(file), __file__, code=2)
    assert "it is no Parquet file; give a file that `heron capture` has written" in damaged


def replayed(sandbox: Sandbox, file: Path, *options: str) -> Counter[str]:
    """Replay a file, check its result, and return what the bolts have counted."""
    report = sandbox.root / "report.json"
    assert sandbox.programs is not None
    program = str(sandbox.programs / "captured.py")
    out = sandbox.root / f"counted-{file.stem}-{options[0]}"
    out.mkdir()
    words = (str(file), program, *options, "--report", str(report), "--", "--out", str(out))
    run: HeronRun = sandbox.start_command("replay", *words)
    run.wait()
    result: dict[str, Any] = json.loads(report.read_text())
    tuples = sum(counts_of(file).values())
    assert run.process.poll() == 0, run.stderr
    assert (result["tuples"], result["emitted"], result["acked"], result["failed"]) == (tuples, tuples, tuples, 0)
    assert result["latency_s"]["p99"] >= result["latency_s"]["p50"] > 0
    counts: Counter[str] = Counter()
    for each in out.glob("count-*.json"):
        counts.update(dict(json.loads(each.read_text())))
    return counts


def tuples_of(file: Path) -> list[tuple[int, Any]]:
    """Return how many tuples each row stands for, and its values."""
    table = pq.read_table(file, columns=["tuples", "values"]).to_pydict()
    return [(number, read_plain(data)) for number, data in zip(table["tuples"], table["values"], strict=True)]


def counts_of(file: Path) -> Counter[str]:
    """Return how often the file has each word."""
    counts: Counter[str] = Counter()
    for number, (word, _) in tuples_of(file):
        counts[word] += number
    return counts
