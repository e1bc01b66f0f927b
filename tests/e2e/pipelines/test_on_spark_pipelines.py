"""Pipelines on Spark of this machine: the results of Heron, and the same commands."""

from __future__ import annotations

import json
import re
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from heron_testing.waiting import wait_until
from spark_run import BATCH, RUN_S, STREAMING
from test_pipelines import expected, lines, meaning

if TYPE_CHECKING:
    from heron_testing.sandbox import Sandbox

__all__ = ["expected", "meaning"]

pytestmark = [pytest.mark.servers, pytest.mark.timeout(900), pytest.mark.usefixtures("java")]

_ENDLESS = """\
from heron_streamlet import Builder, Config, Runner, Source

class Numbers(Source):
    bounded = False

    def open(self, partition, position, context):
        return Reader(position or 0)

class Reader:
    def __init__(self, position):
        self.position = position

    def read(self, limit):
        self.position += 1
        return [self.position]

    def close(self):
        pass

builder = Builder()
builder.new_source(Numbers()).set_name("numbers").map(lambda n: 10 // (n % 7)).set_name("divide").log()
Runner().run("endless", Config(), builder)
"""


_COUNTS = """\
from heron_streamlet import Builder, Config, Items, Runner, tumbling_window

builder = Builder()
words = builder.new_source(Items([(1, "a"), (2, "b")])).event_time(lambda word: word[0])
pairs = words.key_by(lambda word: word[1])
pairs.count_by_key_and_window(tumbling_window({window})).set_name("counts").log()
Runner().run("counts", Config(), builder)
"""


_FAILING = """\
from heron_streamlet import Builder, Config, Items, Runner, tumbling_window

def bad(value, wrong):
    if wrong:
        raise ValueError(value)
    return value

builder = Builder()
numbers = builder.new_source(Items(range(10)))
for number in range(8):
    numbers.map(lambda n: bad(n, n < 3)).set_name(f"map-{number}").log()
numbers.key_by(lambda n: "all").reduce_by_key(lambda one, other: bad(other, other == 3)).set_name("reduce").log()
timed = numbers.event_time(lambda n: n).key_by(lambda n: n % 2)
timed.reduce_by_key_and_window(tumbling_window(20), lambda one, other: bad(other, other == 5)).set_name("window").log()
Runner().run("failing", Config(), builder)
"""


def test_another_pipeline_on_a_checkpoint_is_refused(sandbox: Sandbox, tmp_path: Path) -> None:
    """Before Spark starts; the run ends with the reason."""
    kept, files = tmp_path / "kept", [tmp_path / f"counts{window}.py" for window in (10, 20)]
    for file, window in zip(files, (10, 20), strict=True):
        file.write_text(_COUNTS.format(window=window))
    sandbox.run(files[0], *STREAMING, "--set", f"engine.checkpoint={kept}").finished()
    run = sandbox.run(files[1], *STREAMING, "--set", f"engine.checkpoint={kept}")
    assert run.process.returncode == 1, run.all_output
    assert re.search(r"engine\.checkpoint: .*kept has the state of operator 'counts', which was .* and is", run.stderr)


def test_a_batch_is_exact(sandbox: Sandbox, expected: dict[str, list[str]]) -> None:
    """It waits where the source has nothing now, and shows nothing before the end."""
    run = sandbox.start("timed_counts.py", *BATCH)
    (run.out / "go").touch()
    run.finished(RUN_S)
    assert {folder: lines(run, folder) for folder in expected} == expected


def test_a_query_is_submitted_watched_and_killed(sandbox: Sandbox, tmp_path: Path) -> None:
    """By the commands for topologies; a function that fails is shown with operator and line, and the others go on."""
    file, kept = tmp_path / "endless.py", tmp_path / "kept"
    file.write_text(_ENDLESS)
    sandbox.submits = True
    settings = ("--set", "engine.batch_rows=3", "--set", f"engine.checkpoint={kept}")
    for begin in (1, 2):
        sandbox.heron("submit", "spark-streaming", str(file), *settings)
        wait_until(partial(_has_numbers, sandbox, 20 * begin), RUN_S, "results")
        assert "spark-streaming" in sandbox.output_of("status", "endless")
        wait_until(partial(_has_failure, sandbox), RUN_S, "the line of the failure")  # the lines come in turn
        sandbox.heron("kill", "endless", "--profile", "spark-streaming")
    files = (sandbox.home / ".heron" / "logs").glob("*/spark-streaming-1.out")
    text = "".join(path.read_text() for path in sorted(files, key=lambda path: path.stat().st_mtime))
    assert re.search(r"operator 'divide' \(.*endless\.py:21\): ZeroDivisionError", text), text[-3000:]
    printed = [int(line) for line in text.splitlines() if line.strip().isdigit()]
    assert len(printed) >= 40
    wanted = [10 // (number % 7) for number in range(1, 10_000) if number % 7]
    assert printed == wanted[: len(printed)]  # the second run went on behind the first


def test_a_batch_shows_and_counts_what_failed(sandbox: Sandbox, tmp_path: Path) -> None:
    """26 failures in ten operators, two of them behind a shuffle: each operator is named, and the counts stay."""
    file = tmp_path / "failing.py"
    file.write_text(_FAILING)
    run = sandbox.start(file, *BATCH)
    run.finished(RUN_S)
    named = set(re.findall(r"operator '([\w-]+)' \(failing\.py:\d+\): ", run.all_output))
    assert named == {*(f"map-{number}" for number in range(8)), "reduce", "window"}
    assert "of a key has no result, because a function failed: ValueError: 5" in run.all_output
    last = _last_metrics(sandbox.home / ".heron" / "logs", "user/")
    assert {name: last[name] for name in ("failed", "rows", "late", "batches")} == {
        "failed": 26,
        "rows": 10,
        "late": 0,
        "batches": 1,
    }


def _last_metrics(logs: Path, prefix: str) -> dict[str, float]:
    """The last value of each metric whose name has the prefix, without it; of the only run in the folder of logs."""
    found: dict[str, float] = {}
    for path in logs.glob("*/metrics-*.jsonl"):
        for line in path.read_text().splitlines():
            for each in json.loads(line).get("metrics", ()):
                if each["name"].startswith(prefix):
                    found[each["name"].removeprefix(prefix)] = each["value"]
    return found


def _has_numbers(sandbox: Sandbox, least: int) -> bool:
    return sum(line.strip().isdigit() for line in sandbox.log_text("*.out").splitlines()) >= least


def _has_failure(sandbox: Sandbox) -> bool:
    return "ZeroDivisionError" in sandbox.output_of("logs", "endless", "-n", "1000")


@pytest.mark.parametrize(
    ("engine", "reason"),
    [
        ("spark-batch", r"'numbers' \(.*endless\.py:21\): engine 'spark-batch' reads sources to their end"),
        ("storm", "engine.driver"),
    ],
)
def test_a_plan_says_what_an_engine_cannot_do(sandbox: Sandbox, tmp_path: Path, engine: str, reason: str) -> None:
    """Before anything starts."""
    file = tmp_path / "endless.py"
    file.write_text(_ENDLESS)
    assert re.search(reason, sandbox.output_of("plan", str(file), "--engine", engine, code=2))
