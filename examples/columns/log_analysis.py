"""Find the slowest pages of a web shop in its access logs: Parquet files that are read, grouped and ranked in columns.

    pip install heron-serializer-arrow
    heron run examples/columns/log_analysis.py

Without ``--logs FOLDER`` it writes a folder of logs first. The reader takes the columns and rows that are needed out of
the files (projection and filter of `pyarrow.dataset`), so the other columns are never read.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq

from heron.api import Bolt, Grouping, Spout, TopologyBuilder, TopologyContext

TOP = 5


class LogSpout(Spout):
    """Reads the files of its task: every nth of n tasks."""

    outputs = ("page", "ms")
    columns = True

    def initialize(self, config: Mapping[str, Any], context: TopologyContext) -> None:
        files = sorted(Path(config["logs"]).glob("*.parquet"))
        mine = files[context.get_task_index() :: context.get_parallelism()]
        served = ds.field("status") < 400
        self.batches = iter(ds.dataset(mine).to_batches(columns=["page", "ms"], filter=served) if mine else ())

    def next_tuple(self) -> None:
        for batch in self.batches:
            self.emit_columns(batch)
            return
        self.end()


class PageBolt(Bolt):
    """Sums requests and milliseconds by page. Arrow groups each batch; only the sums are Python objects."""

    outputs = ("page", "requests", "mean_ms")

    def initialize(self, config: Mapping[str, Any], context: TopologyContext) -> None:
        self.sums: dict[str, tuple[int, float]] = {}

    def process_columns(self, batch: pa.RecordBatch) -> None:
        found = pa.table(batch).group_by("page").aggregate([("ms", "count"), ("ms", "sum")])
        for page, requests, total_ms in zip(
            *(found.column(each).to_pylist() for each in found.column_names), strict=True
        ):
            before, before_ms = self.sums.get(page, (0, 0.0))
            self.sums[page] = before + requests, before_ms + total_ms

    def finish(self) -> None:
        pages, sums = list(self.sums), list(self.sums.values())
        if pages:
            requests, totals = (np.array(each) for each in zip(*sums, strict=True))
            self.emit_columns({"page": pages, "requests": requests, "mean_ms": totals / requests})


class TopBolt(Bolt):
    """Keeps the slowest pages of all tasks."""

    def initialize(self, config: Mapping[str, Any], context: TopologyContext) -> None:
        self.batches: list[pa.RecordBatch] = []

    def process_columns(self, batch: pa.RecordBatch) -> None:
        self.batches.append(batch)

    def finish(self) -> None:
        pages = pa.Table.from_batches(self.batches)
        slowest = pc.select_k_unstable(pages, TOP, [("mean_ms", "descending")])
        for row in pages.take(slowest).to_pylist():
            print(f"{row['page']:12} {row['requests']:9,} requests {row['mean_ms']:7.1f} ms")


def write_logs(folder: Path, files: int = 4, rows: int = 250_000) -> None:
    """Write access logs: a page is the slower the lower its number, and one request in 20 fails."""
    folder.mkdir()
    for number in range(files):
        random = np.random.default_rng(number)
        page = random.integers(0, 200, rows)
        table = pa.table(
            {
                "page": pa.DictionaryArray.from_arrays(pa.array(page), [f"/item/{each}" for each in range(200)]),
                "status": np.where(random.random(rows) < 0.05, 500, 200),
                "ms": random.exponential(1000.0 / (1 + page)),
                "user": [f"user-{each}" for each in random.integers(0, 10_000, rows)],
            }
        )
        pq.write_table(table, folder / f"log-{number}.parquet")


def log_analysis(arguments: Sequence[str]) -> TopologyBuilder:
    """Build the topology."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--logs", type=Path, help="folder of Parquet files with the columns page, status and ms")
    logs = parser.parse_args(arguments).logs
    if logs is None:
        logs = Path(tempfile.gettempdir(), "heron-example-logs")
        if not logs.exists():
            write_logs(logs)
    elif not any(logs.glob("*.parquet")):
        parser.error(f"--logs {logs}: the folder does not exist or has no Parquet files")
    builder = TopologyBuilder("log-analysis")
    lines = builder.add_spout("lines", LogSpout, par=2, config={"logs": str(logs.absolute())})
    pages = builder.add_bolt("pages", PageBolt, par=2, inputs={lines: Grouping.fields("page")})
    builder.add_bolt("top", TopBolt, par=1, inputs={pages: Grouping.LOWEST})
    return builder


if __name__ == "__main__":
    log_analysis(sys.argv[1:]).build_and_submit()
