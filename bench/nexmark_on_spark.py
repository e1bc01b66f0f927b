"""Queries of Nexmark as Structured Streaming: compiled from the pipelines, and written by hand in PySpark.

`main` needs a process of its own, whose PYTHONPATH has this package, the topology files and the examples. It reads
lines ``QUERY FORM ROUNDS``, and answers each with the events per second; ROUNDS is how often the block is replayed.
"""

from __future__ import annotations

import sys
import tempfile
import threading
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import pandas as pd
from nexmark_replay import BLOCK, BLOCK_MS, PARTS, Replay, block_of, later_event, results_of
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sql

from bench.pipeline_forms_on_spark import Heard
from heron_engine_spark.batch_log import BatchLog
from heron_engine_spark.checkpoint_folder import CheckpointFolder
from heron_engine_spark.options import BatchOptions
from heron_engine_spark.pipeline_job import PipelineJob
from heron_engine_spark.session import start_session
from heron_engine_spark.spark_plan import spark_plan, spark_stages
from heron_streamlet import Builder

BY_HAND = ("q1", "q2", "q5", "q7")
_BATCHES = 3
_ARROW_ROWS = "spark.sql.execution.arrow.maxRecordsPerBatch"
_SKIP = 123


def compiled(session: SparkSession, query: str, rounds: int, blocks: str, folder: Path) -> float:
    """Events a second of the compiled pipeline: of its batches without the first."""
    session.conf.set(_ARROW_ROWS, "64")
    builder = Builder()
    results_of(query, builder, Replay(blocks, rounds, "rows", None)).consume(_ignore)
    rows = rounds * BLOCK // PARTS // _BATCHES
    plan = spark_plan(spark_stages(builder.graph()), "nexmark", folder.name, PARTS, 1024, row_limit=rows, saves=True)
    heard = Heard()
    job = PipelineJob(session, plan, BatchLog(CheckpointFolder(str(folder / "log"))), folder, heard)
    stream = job.stream(0.1).writeStream.foreachBatch(lambda read, number: job.process(read, number + 1))
    query_of_it = stream.option("checkpointLocation", str(folder / "spark")).trigger(availableNow=True).start()
    query_of_it.awaitTermination()
    (first_s, _), (last_s, _) = heard.batches[0], heard.batches[_BATCHES - 1]
    return sum(rows for _, rows in heard.batches[1:_BATCHES]) / (last_s - first_s)


def _ignore(result: object) -> None:
    """Takes a result."""


def by_hand(session: SparkSession, query: str, rounds: int, blocks: str, folder: Path) -> float:
    """Events a second of the query in PySpark; windows are those of Spark."""
    session.conf.set(_ARROW_ROWS, "10000")
    session.conf.set("spark.sql.shuffle.partitions", str(PARTS))
    rows = rounds * BLOCK // _BATCHES
    source = session.readStream.format("rate-micro-batch").option("rowsPerBatch", rows)
    numbers = source.option("numPartitions", PARTS).load()
    results = _QUERIES[query](numbers, blocks)
    written = results.writeStream.format("noop").option("checkpointLocation", str(folder / "spark")).start()
    pause = threading.Event()
    while len(done := [each for each in written.recentProgress if each["numInputRows"]]) < _BATCHES:
        if (error := written.exception()) is not None:
            raise error
        pause.wait(0.05)
    with suppress(Exception):  # a batch beyond those that are measured is interrupted
        written.stop()
    times_s: list[float] = [each["durationMs"]["triggerExecution"] / 1000 for each in done[1:_BATCHES]]
    return rows * len(times_s) / sum(times_s)


def bids_of(frames: Iterator[pd.DataFrame], blocks: str) -> Iterator[list[Any]]:
    """The bids among the events with these numbers: each frame has those of one part."""
    parts = [block_of(str(Path(blocks, f"rows-{part}.pickle"))) for part in range(PARTS)]
    for frame in frames:
        events = [
            later_event(parts[number % PARTS][number % BLOCK // PARTS], number // BLOCK * BLOCK_MS)
            for number in frame["value"].tolist()
        ]
        yield [each for each in events if len(each) == 5]


def _in_euro(numbers: DataFrame, blocks: str) -> DataFrame:
    def frames(given: Iterator[pd.DataFrame]) -> Iterator[pd.DataFrame]:
        for bids in bids_of(given, blocks):
            euro = [(bid.auction, bid.bidder, bid.price * 89 // 100, bid.time, bid.extra) for bid in bids]
            yield pd.DataFrame(euro, columns=["auction", "bidder", "price", "time", "extra"])

    return numbers.mapInPandas(frames, "auction long, bidder long, price long, time long, extra string")


def _selection(numbers: DataFrame, blocks: str) -> DataFrame:
    def frames(given: Iterator[pd.DataFrame]) -> Iterator[pd.DataFrame]:
        for bids in bids_of(given, blocks):
            chosen = [(bid.auction, bid.price) for bid in bids if bid.auction % _SKIP == 0]
            yield pd.DataFrame(chosen, columns=["auction", "price"], dtype="int64")

    return numbers.mapInPandas(frames, "auction long, price long")


def _timed(numbers: DataFrame, blocks: str) -> DataFrame:
    def frames(given: Iterator[pd.DataFrame]) -> Iterator[pd.DataFrame]:
        for bids in bids_of(given, blocks):
            values = [(bid.auction, bid.bidder, bid.price, bid.time) for bid in bids]
            frame = pd.DataFrame(values, columns=["auction", "bidder", "price", "time"], dtype="int64")
            frame["time"] = pd.to_datetime(frame["time"], unit="ms", utc=True)
            yield frame

    timed = numbers.mapInPandas(frames, "auction long, bidder long, price long, time timestamp")
    return timed.withWatermark("time", "1 second")


def _hot_items(numbers: DataFrame, blocks: str) -> DataFrame:
    windows = _timed(numbers, blocks).groupBy(sql.window("time", "10 seconds", "5 seconds"), "auction").count()
    return windows.groupBy("window").agg(sql.max(sql.struct("count", "auction")))


def _highest_bids(numbers: DataFrame, blocks: str) -> DataFrame:
    windows = _timed(numbers, blocks).groupBy(sql.window("time", "10 seconds"))
    return windows.agg(sql.max(sql.struct("price", "auction", "bidder")))


_QUERIES: Mapping[str, Callable[[DataFrame, str], DataFrame]] = {
    "q1": _in_euro,
    "q2": _selection,
    "q5": _hot_items,
    "q7": _highest_bids,
}


def main(blocks: str) -> None:
    """Answer requests until the input ends."""
    warnings.filterwarnings("ignore", "PySpark does not yet fully support pandas")
    forms = {"compiled": compiled, "by_hand": by_hand}
    with tempfile.TemporaryDirectory() as scratch:
        options = BatchOptions(master=f"local[{PARTS}]", conf={"spark.ui.enabled": False})
        session = start_session("bench", options, Path(scratch))
        for request in sys.stdin:
            query, form, rounds = request.split()
            folder = Path(tempfile.mkdtemp(dir=scratch))
            print("rate", forms[form](session, query, int(rounds), blocks, folder), flush=True)
        session.stop()
