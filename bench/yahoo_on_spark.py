"""The Yahoo streaming benchmark on Structured Streaming: the pipeline, compiled, and PySpark by hand.

`main` needs a process with this package and the topology files on its PYTHONPATH: workers import both. Forms alternate,
and a first pair, in which Spark warms up, is not printed.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pandas as pd
from ad_events import AdEvent, ad_events, later_block
from pyspark.sql import SparkSession
from pyspark.sql import functions as sql
from replay import BLOCK, PER_S
from yahoo_ads import WINDOW_S, count_rows, is_view, joined, projected

from bench.pipeline_forms_on_spark import (
    ARROW_ROWS,
    BATCHES,
    PARTS,
    SLOTS,
    Heard,
    rows_a_second,
    run_compiled,
    spark_session,
)
from bench.yahoo_recount import Place, recount
from heron_streamlet import Builder, KeyedWindow

__all__ = ["main"]


@dataclass
class Counts(Heard):
    """What a job reports, with the sum of the results that it shows."""

    sum: int = 0

    def show(self, line: str) -> None:
        """`Listener.show`."""
        Heard.show(self, line)
        self.sum += int(line.rsplit(maxsplit=1)[-1])


def squared(result: tuple[KeyedWindow[str], int]) -> int:
    """The square of a count."""
    return result[1] * result[1]


def compiled(session: SparkSession, rounds: int, folder: Path) -> float:
    """Records a second of the compiled pipeline.

    Raises:
        RuntimeError: when its results are wrong.
    """
    builder = Builder()
    count_rows(builder.new_source(ad_events(rounds, PARTS))).map(squared).log()
    heard = Counts()
    rate = run_compiled(session, builder, rounds * BLOCK, folder, heard, live=True)
    expected = recount()
    wanted = rounds * len(expected), rounds * sum(count * count for count in expected.values())
    if (heard.lines, heard.sum) != wanted:
        msg = f"compiled: {heard.lines} results with the sum {heard.sum}, not {wanted}"
        raise RuntimeError(msg)
    return rate


def by_hand(session: SparkSession, rounds: int, folder: Path) -> float:
    """Records a second of the query in PySpark, with the same functions of Python; Spark counts in compiled code.

    Raises:
        RuntimeError: when a window that has closed is wrong.
    """
    session.conf.set(ARROW_ROWS, "10000")
    session.conf.set("spark.sql.shuffle.partitions", str(SLOTS))
    rows = rounds * BLOCK // BATCHES
    source = session.readStream.format("rate-micro-batch").option("rowsPerBatch", rows)
    views = source.option("numPartitions", SLOTS).load().mapInPandas(_views, "campaign string, ts timestamp")
    window = sql.window("ts", f"{WINDOW_S} seconds")
    counts = views.withWatermark("ts", "0 seconds").groupBy(window, "campaign").count()
    name = f"counts_{folder.name}"
    writer = counts.writeStream.format("memory").queryName(name).outputMode("append")
    rate = rows_a_second(writer.option("checkpointLocation", str(folder / "spark")).start(), rows)
    found = session.table(name).selectExpr("unix_timestamp(window.start) as start", "campaign", "count").collect()
    _check({(row["start"], row["campaign"]): row["count"] for row in found}, rounds)
    return rate


def _check(found: Mapping[tuple[int, str], int], rounds: int) -> None:
    expected = recount()
    wrong = [place for place, count in found.items() if expected[_in_block(place)] != count]
    closed = (rounds - 2 * rounds // BATCHES) * len(expected)  # those of the last two batches may be open
    if wrong or len(found) < closed:
        msg = f"by hand: {len(wrong)} of {len(found)} windows are wrong: {wrong[:3]}; {closed} have closed"
        raise RuntimeError(msg)


def _in_block(place: tuple[int, str]) -> Place:
    return place[0] // WINDOW_S % (BLOCK // PER_S // WINDOW_S), place[1]


def _views(frames: Iterator[pd.DataFrame]) -> Iterator[pd.DataFrame]:
    for frame in frames:
        events: list[AdEvent] = later_block(frame["value"].tolist())
        views = [joined(projected(event)) for event in events if is_view(event)]
        micros = (pd.Series([time_s for _, time_s in views]) * 1_000_000).round().astype("int64")
        yield pd.DataFrame(
            {"campaign": [campaign for campaign, _ in views], "ts": micros.astype("datetime64[us, UTC]")}
        )


def main(rounds: int, pairs: int) -> None:
    """Measure, and print ``FORM RATE`` for each run."""
    with spark_session() as (session, scratch):
        for pair in range(pairs + 1):
            for form in (compiled, by_hand):
                rate = form(session, rounds, Path(tempfile.mkdtemp(dir=scratch)))
                if pair:
                    print(form.__name__, rate, flush=True)
