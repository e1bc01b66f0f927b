"""The load of a running topology, captured and replayed with real processes."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest

from heron_load_replay.plain_rows import read_plain

if TYPE_CHECKING:
    from heron_testing.heron_run import HeronRun
    from heron_testing.sandbox import Sandbox


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
def test_a_size_is_checked_by_a_replay_with_these_tasks(sandbox: Sandbox) -> None:
    """Two tasks count a few hundred words, and one is enough: the second replay has it, and meets the objective."""
    run = sandbox.start("captured.py")
    run.until((run.out / "flows").exists, "words at the bolts")
    file = sandbox.root / "shape.parquet"
    sandbox.output_of("capture", "captured", "--seconds", "20", "--out", str(file), "--shape")
    (run.out / "stop").touch()
    run.wait()
    assert sandbox.programs is not None
    out = sandbox.root / "sized"
    out.mkdir()
    words = (str(file), str(sandbox.programs / "captured.py"), "--p99", "10000", "--", "--out", str(out))
    sized = sandbox.start_command("size", *words)
    sized.wait()
    assert sized.process.poll() == 0, sized.stderr
    assert "tasks: count 1; their work keeps 0." in sized.stdout
    assert "checked by a second replay" in sized.stdout
    assert "ms, wanted 10000 ms" in sized.stdout


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
