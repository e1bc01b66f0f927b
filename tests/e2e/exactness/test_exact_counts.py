"""Every tuple arrives once, at the task that owns its key."""

from __future__ import annotations

import json
import re
from collections import Counter
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from heron_cli.foreground.run_report import RunReport
    from heron_testing.heron_run import HeronRun
    from heron_testing.sandbox import Sandbox

WORDS_A_LINE = 10


def expected_counts(words: int) -> Counter[str]:
    """Compute the counts of the topology ``counting``."""
    counts: Counter[str] = Counter()
    for number in range(1000):
        times = len(range(number, words // WORDS_A_LINE, 1000))
        counts.update({f"w{(number * 7 + place * 131) % 1009}": 0 for place in range(WORDS_A_LINE)})
        for place in range(WORDS_A_LINE):
            counts[f"w{(number * 7 + place * 131) % 1009}"] += times
    return counts


def test_counts_of_five_million_words_over_three_containers_are_exact(sandbox: Sandbox) -> None:
    """Two spouts, three splitters and four counters: no tuple is lost, duplicated or counted by two tasks."""
    words = 5_000_000
    run = sandbox.start("counting.py", args=("--words", str(words)))
    check(run, run.finished(), words)


@pytest.mark.guarantee
def test_counts_stay_exact_when_topology_and_metrics_managers_die(sandbox: Sandbox) -> None:
    """Tuples do not pass the topology and metrics managers: data flows on, and the report is complete.

    Guarantee: without acks each tuple is counted once by the task of its key, data flows on without topology and
    metrics managers, and the report has the documented fields.
    """
    words = 2_000_000
    run = sandbox.start("counting.py", args=("--words", str(words)))
    run.until(lambda: re.search(r"count [1-9][\d,]* executed", run.stderr), "tuples counted")
    for process in [*run.processes("tmanager"), *run.processes("metricsmgr")]:
        process.kill()
    check(run, run.finished(), words)
    check_fields(sandbox, run)


def check(run: HeronRun, report: RunReport, words: int) -> None:
    """Compare the results of the counters and the report with the expected counts."""
    counted: Counter[str] = Counter()
    for rows in run.results("count").values():
        counts = {str(word): int(str(count)) for word, count in rows}
        assert not counts.keys() & counted.keys(), "a word was counted by two tasks"
        counted.update(counts)
    assert counted == expected_counts(words)
    figures = {
        name: (each.parallelism, each.emitted, each.executed, each.failed) for name, each in report.components.items()
    }
    lines = words // WORDS_A_LINE
    assert figures == {"lines": (2, lines, 0, 0), "split": (3, words, lines, 0), "count": (4, 0, words, 0)}


def check_fields(sandbox: Sandbox, run: HeronRun) -> None:
    """Programs read the report. Times are in seconds of the run, and the id is that of the logs."""
    report = json.loads((run.folder / "report.json").read_bytes())
    assert list(report) == ["topology", "id", "state", "elapsed_s", "first_tuple_s", "components"]
    assert list(report["components"]) == ["lines", "split", "count"]
    for each in report["components"].values():
        assert list(each) == ["parallelism", "emitted", "executed", "acked", "failed"]
    assert report["topology"] == "counting"
    assert (sandbox.home / ".heron" / "logs" / report["id"]).is_dir()
    assert 0 < report["first_tuple_s"] <= report["elapsed_s"] < 90
