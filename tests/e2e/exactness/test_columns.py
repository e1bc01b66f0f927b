"""Columns between processes: mixed with rows, acked, replayed, checkpointed, and moved by an update."""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from committed_lines import PARTITIONS, check_committed, commits

if TYPE_CHECKING:
    from pathlib import Path

    from heron_testing.heron_run import HeronRun
    from heron_testing.sandbox import Sandbox


NUMBERS, ROWS = 400, 100
ROW_FAILS, COLUMN_FAILS = 250, 377


def counted(run: HeronRun, component: str) -> Counter[tuple[object, ...]]:
    """Return how often each row arrived, over the tasks; each key was counted by its task alone."""
    tasks = run.results(component)
    keys = [{str(row[2]) for row in rows if row[0] == "rows"} for rows in tasks.values()]
    assert not set.intersection(*keys), "a key was counted by two tasks"
    return Counter(tuple(row) for rows in tasks.values() for row in rows)


def check_counts(run: HeronRun, replayed: dict[str, set[int]]) -> None:
    """Each number came from both bolts and reached both counts; `replayed` ones came twice from some bolts."""
    for count in ("row_count", "column_count"):
        rows = counted(run, count)
        assert rows[("columns", -1, "k6")] == rows[("columns", -2, "k5")] == 1, "what finish emitted"
        for source in ("rows", "columns"):
            for number in range(NUMBERS):
                times = rows[(source, number, f"k{number % 7}")]
                assert times == 1 or (times > 1 and number in replayed[source]), (count, source, number, times)


@pytest.mark.parametrize("form", ["unit", pytest.param("ids", marks=pytest.mark.guarantee), "rows"])
def test_rows_and_columns_mix_and_a_failed_part_is_replayed(sandbox: Sandbox, form: str) -> None:
    """Every number passes bolts of both forms; a root is a batch, or a row, and what failed comes again.

    Guarantee: rows and columns mix, and what failed is replayed.
    """
    run = sandbox.start("mixed_columns.py", args=("--form", form, "--numbers", str(NUMBERS)))
    run.finished()
    ((acked, failed),) = run.results("numbers").values()
    expected = set(range(0, NUMBERS, ROWS) if form == "unit" else range(NUMBERS))
    assert set(map(int, map(str, acked))) == expected
    fails = set(map(int, map(str, failed)))
    if form == "unit":
        assert fails == {200, 300}
        blocks = {number for first in fails for number in range(first, first + ROWS)}
        check_counts(run, {"rows": blocks, "columns": blocks})
    else:
        assert {ROW_FAILS, COLUMN_FAILS} <= fails
        check_counts(run, {"rows": fails, "columns": fails})


def test_columns_arrive_once_without_acks(sandbox: Sandbox) -> None:
    """At most once, the failures of bolts lose what they failed and nothing else."""
    run = sandbox.start("mixed_columns.py", args=("--mode", "ATMOST_ONCE", "--numbers", "300"))
    report = run.finished()
    for count in ("row_count", "column_count"):
        rows = counted(run, count)
        lost = 1  # the bolt of rows failed a number
        assert rows.total() == 600 - lost + 2  # and what finish emitted
        assert set(rows.values()) == {1}
    assert report.components["numbers"].emitted == 300
    assert report.components["rows"].executed == report.components["columns"].executed == 300


def test_the_simulator_gives_the_same(sandbox: Sandbox) -> None:
    """In one process, with the same replays."""
    run = sandbox.start("mixed_columns.py", "--simulate", args=("--numbers", str(NUMBERS)))
    run.finished()
    ((acked, failed),) = run.results("numbers").values()
    assert (acked, failed) == (list(range(0, NUMBERS, ROWS)), [200, 300])
    blocks = set(range(200, 400))
    check_counts(run, {"rows": blocks, "columns": blocks})


@pytest.mark.guarantee
def test_columns_are_exact_through_an_update_and_a_death(sandbox: Sandbox) -> None:
    """Effectively once: key groups and their state move, a task is killed, and each number is committed once.

    Guarantee: columns are exactly once through an update and a death.
    """
    run = sandbox.start("exactly_once_columns.py")
    sandbox.wait_for_state(run, "exactly_once")
    commits(run, "at the start")
    words = ("update", "exactly_once", "--component-parallelism", "count:3", "--component-parallelism", "read:3")
    done = json.loads(sandbox.output_of(*words, "--json"))
    assert len(done["added"]) == 2
    commits(run, "after the update")
    run.processes("instance", "count-")[0].kill()
    commits(run, "after a death")
    (run.out / "stop").touch()
    run.finished()
    assert check_committed(run.out, PARTITIONS) > 0


def test_the_examples_count_and_rank(sandbox: Sandbox, examples: Path, tmp_path: Path) -> None:
    """As their documents say; the second reads Parquet files with a projection and a filter."""
    run = sandbox.run(examples / "columns" / "count_words.py")
    run.finished()
    counts = [line.split() for line in run.stdout.splitlines() if "," in line and "finished" not in line]
    assert sum(int(count.replace(",", "")) for *_, count in counts) == 2_000_000
    assert len(counts) == 8
    folder = tmp_path / "logs"
    folder.mkdir()
    for number in range(3):
        page = [f"/page/{each % 10}" for each in range(1000)]
        ms = [float(100 - each % 10 + number) for each in range(1000)]
        table = {"page": page, "status": [200 if each % 50 else 500 for each in range(1000)], "ms": ms}
        pq.write_table(pa.table(table), folder / f"{number}.parquet")
    run = sandbox.run(examples / "columns" / "log_analysis.py", args=("--logs", str(folder)))
    run.finished()
    rows = [line.split("|")[-1].split() for line in run.stdout.splitlines() if "requests" in line]
    assert [(row[0], row[1], row[3]) for row in rows] == [
        (f"/page/{page}", "240" if page == 0 else "300", f"{101 - page}.0") for page in range(5)
    ]


@pytest.mark.starts_nothing
def test_without_the_plugin_nothing_starts(sandbox: Sandbox) -> None:
    """The error names the component and the package."""
    run = sandbox.run("mixed_columns.py", "--without", "serializer.arrow")
    assert run.process.returncode == 2, run.all_output
    assert "component 'numbers': topology.columns: serializer driver 'arrow' is switched off" in run.stderr
    assert sandbox.remaining() == []
