"""A pipeline from Delta to Delta: its results are a recount of the table, each row once, whatever dies."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from deltalake.exceptions import TableNotFoundError

if TYPE_CHECKING:
    from heron_testing.heron_run import HeronRun
    from heron_testing.sandbox import Sandbox

_FILES, _ROWS = 6, 500

Row = tuple[object, ...]


def fill(table: Path) -> list[Row]:
    """Write a partitioned table; return its rows."""
    found: list[Row] = []
    for number in range(_FILES):
        times = [index * 100 / _ROWS for index in range(_ROWS)]
        keys = [f"k{(index * 7 + number) % 5}" for index in range(_ROWS)]
        rows = pa.table({"time": times, "key": keys, "day": pa.repeat(number % 2, _ROWS)})
        write_deltalake(table, rows, mode="append", partition_by=["day"])
        found += zip(times, keys, [number % 2] * _ROWS, strict=True)
    return found


def rows_of(run: HeronRun, name: str, *columns: str) -> Counter[Row]:
    """How often each row is in a table of the results."""
    try:
        found = DeltaTable(run.out / name).to_pyarrow_table(columns=list(columns)).to_pylist()
    except TableNotFoundError:
        return Counter()
    return Counter(tuple(row[column] for column in columns) for row in found)


def kill_one(run: HeronRun, name: str) -> None:
    """Kill a task, and wait for the process that replaces it."""
    before = {process.pid for process in run.processes("instance", name)}
    run.processes("instance", name)[0].kill()
    run.until(lambda: {each.pid for each in run.processes("instance", name)} - before, f"another {name}")


@pytest.mark.guarantee
def test_rows_are_there_once_when_tasks_die(sandbox: Sandbox, tmp_path: Path) -> None:
    """Positions, windows and transactions come back from one checkpoint; later versions of the table are not read.

    Guarantee: a Delta table gets each row once.
    """
    written = fill(tmp_path / "visits")
    run = sandbox.start("delta_counts.py", args=("--table", str(tmp_path / "visits")))
    run.until(lambda: rows_of(run, "copies", "time").total() > _ROWS, "rows of the first half")
    write_deltalake(tmp_path / "visits", pa.table({"time": [0.0], "key": ["k0"], "day": [0]}), mode="overwrite")
    kill_one(run, "/copies")
    kill_one(run, "/visits")
    (run.out / "go").touch()
    run.finished()
    assert rows_of(run, "copies", "time", "key", "day") == Counter(written)
    counts = Counter((int(float(str(time))) // 10 * 10, key) for time, key, _ in written)
    assert rows_of(run, "counts", "start", "key", "count") == Counter((*place, n) for place, n in counts.items())
    assert list((run.out / "staged").iterdir()) == []
