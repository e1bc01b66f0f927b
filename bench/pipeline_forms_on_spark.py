"""One pipeline on Spark in two forms: compiled, and written by hand in PySpark with the same functions.

`main` needs a process of its own, whose PYTHONPATH has this package: workers import it. It prints ``FORM RATE RESULTS``
for each run; forms alternate, and a first pair, in which Spark warms up, is not printed.
"""

from __future__ import annotations

import tempfile
import threading
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import pandas as pd
from pyspark.sql import SparkSession
from pyspark.sql import functions as sql
from pyspark.sql.streaming.query import StreamingQuery

from heron.clock import monotonic_s
from heron_engine_spark.batch_log import BatchLog
from heron_engine_spark.checkpoint_folder import CheckpointFolder
from heron_engine_spark.options import BatchOptions
from heron_engine_spark.pipeline_job import BatchResult, PipelineJob
from heron_engine_spark.session import start_session
from heron_engine_spark.spark_plan import spark_plan, spark_stages
from heron_streamlet import Builder, Reader, Source, StageContext, tumbling_window

PARTS = 4
SLOTS = 2
_PER_S = 100_000  # of event time
_WINDOW_S = 20
BATCHES = 8  # of a stream
ARROW_ROWS = "spark.sql.execution.arrow.maxRecordsPerBatch"


class Numbers(Source[int]):
    """Ascending numbers, in four parts."""

    def __init__(self, count: int) -> None:
        self._count = count

    def partitions(self, tasks: int) -> Sequence[str]:
        """`Source.partitions`."""
        del tasks
        return [str(part) for part in range(PARTS)]

    def open(self, partition: str, position: object, context: StageContext) -> Reader[int]:
        """`Source.open`."""
        del context
        begin, end = (part * self._count // PARTS for part in (int(partition), int(partition) + 1))
        return NumberReader(position if isinstance(position, int) else begin, end)


class NumberReader:
    """Reads one part."""

    def __init__(self, position: int, end: int) -> None:
        self.position = position
        self._end = end

    def read(self, limit: int) -> Sequence[int] | None:
        """`Reader.read`."""
        begin = self.position
        self.position = min(begin + limit, self._end)
        return range(begin, self.position) or None

    def close(self) -> None:
        """`Reader.close`."""


def double(number: int) -> int:
    """A step of the pipeline."""
    return 2 * number + 1


def is_kept(number: int) -> bool:
    """A condition of the pipeline."""
    return number % 5 != 0


def key_of(number: int) -> int:
    """One of a thousand keys."""
    return number % 1000


def time_of(number: int) -> float:
    """Event time in seconds."""
    return number / _PER_S


@dataclass
class Heard:
    """What a job reports."""

    lines: int = 0
    batches: list[tuple[float, int]] = field(default_factory=list)

    def show(self, line: str) -> None:
        """`Listener.show`."""
        del line
        self.lines += 1

    def keep(self, letters: Sequence[bytes]) -> None:
        """`Listener.keep`: nothing fails here."""

    def done(self, result: BatchResult) -> None:
        """`Listener.done`."""
        self.batches.append((monotonic_s(), result.rows))


def compiled(session: SparkSession, records: int, folder: Path, *, live: bool) -> tuple[float, int]:
    """Records a second and the number of results of the compiled pipeline."""
    builder = Builder()
    numbers = builder.new_source(Numbers(records)).event_time(time_of, lag=records)
    pairs = numbers.map(double).filter(is_kept).key_by(key_of)
    pairs.count_by_key_and_window(tumbling_window(_WINDOW_S)).map(str).log()
    heard = Heard()
    return run_compiled(session, builder, records, folder, heard, live=live), heard.lines


def run_compiled(
    session: SparkSession, builder: Builder, records: int, folder: Path, heard: Heard, *, live: bool
) -> float:
    """Run a pipeline whose source has `PARTS` partitions of one size; return the records a second."""
    session.conf.set(ARROW_ROWS, "64")
    limits = {"row_limit": records // PARTS // BATCHES, "saves": True} if live else {}
    plan = spark_plan(spark_stages(builder.graph()), "pipeline", folder.name, SLOTS, 1024, **limits)
    job = PipelineJob(session, plan, BatchLog(CheckpointFolder(str(folder / "log"))), folder, heard)
    begin_s = monotonic_s()
    if not live:
        job.run_batch()
        return records / (monotonic_s() - begin_s)
    stream = job.stream(0.1).writeStream.foreachBatch(lambda read, number: job.process(read, number + 1))
    query = stream.option("checkpointLocation", str(folder / "spark")).trigger(availableNow=True).start()
    query.awaitTermination()
    (first_s, _), (last_s, _) = heard.batches[0], heard.batches[BATCHES - 1]
    return sum(rows for _, rows in heard.batches[1:BATCHES]) / (last_s - first_s)


def by_hand(session: SparkSession, records: int, folder: Path, *, live: bool) -> tuple[float, int]:
    """The same of a query in PySpark; a stream counts its windows in Spark's compiled code."""
    session.conf.set(ARROW_ROWS, "10000")
    if not live:
        begin_s = monotonic_s()
        partial = session.range(0, records, 1, PARTS).mapInPandas(_partial, "k long, w long, c long")
        found = len(partial.repartition(SLOTS, "k").mapInPandas(_final, "k long, w long, c long").collect())
        return records / (monotonic_s() - begin_s), found
    session.conf.set("spark.sql.shuffle.partitions", str(SLOTS))
    rows = records // BATCHES
    source = session.readStream.format("rate-micro-batch").option("rowsPerBatch", rows)
    timed = source.option("numPartitions", SLOTS).load().mapInPandas(_timed, "k long, ts timestamp")
    windows = timed.withWatermark("ts", "1 second").groupBy(sql.window("ts", f"{_WINDOW_S} seconds"), "k").count()
    query = windows.writeStream.format("noop").option("checkpointLocation", str(folder / "spark")).start()
    return rows_a_second(query, rows), 0


def rows_a_second(query: StreamingQuery, rows: int) -> float:
    """Wait for `BATCHES` micro-batches of so many rows, stop the query, and return the rate without the first batch."""
    pause = threading.Event()
    while len(done := [each for each in query.recentProgress if each["numInputRows"]]) < BATCHES:
        if query.exception():
            raise RuntimeError(str(query.exception()))
        pause.wait(0.05)
    with suppress(Exception):  # a batch beyond those that are measured is interrupted
        query.stop()
    times_s = [each["durationMs"]["triggerExecution"] / 1000 for each in done[1:BATCHES]]
    return float(rows * len(times_s) / sum(times_s))


def _partial(frames: Iterator[pd.DataFrame]) -> Iterator[pd.DataFrame]:
    counts: Counter[tuple[int, int]] = Counter()
    for frame in frames:
        for number in frame["id"].tolist():
            time_s, value = time_of(number), double(number)
            if is_kept(value):
                counts[key_of(value), int(time_s // _WINDOW_S)] += 1
    yield _frame(counts)


def _final(frames: Iterator[pd.DataFrame]) -> Iterator[pd.DataFrame]:
    counts: Counter[tuple[int, int]] = Counter()
    for frame in frames:
        for key, window, count in zip(frame["k"].tolist(), frame["w"].tolist(), frame["c"].tolist(), strict=True):
            counts[key, window] += count
    yield _frame(counts)


def _timed(frames: Iterator[pd.DataFrame]) -> Iterator[pd.DataFrame]:
    for frame in frames:
        keys, times_s = [], []
        for number in frame["value"].tolist():
            time_s, value = time_of(number), double(number)
            if is_kept(value):
                keys.append(key_of(value))
                times_s.append(time_s)
        micros = (pd.Series(times_s) * 1_000_000).round().astype("int64")
        yield pd.DataFrame({"k": keys, "ts": micros.astype("datetime64[us, UTC]")})


def _frame(counts: Counter[tuple[int, int]]) -> pd.DataFrame:
    keys = list(counts)
    return pd.DataFrame({"k": [key for key, _ in keys], "w": [each for _, each in keys], "c": list(counts.values())})


def main(kind: str, records: int, pairs: int) -> None:
    """Measure, and print. `kind` is batch or stream."""
    with spark_session() as (session, scratch):
        for pair in range(pairs + 1):
            for form in (compiled, by_hand):
                folder = Path(tempfile.mkdtemp(dir=scratch))
                rate, results = form(session, records, folder, live=kind == "stream")
                if pair:
                    print(form.__name__, rate, results, flush=True)


@contextmanager
def spark_session() -> Iterator[tuple[SparkSession, Path]]:
    """Yield a session with `SLOTS` slots, and a folder; end both."""
    warnings.filterwarnings("ignore", "PySpark does not yet fully support pandas")
    with tempfile.TemporaryDirectory() as scratch:
        options = BatchOptions(master=f"local[{SLOTS}]", conf={"spark.ui.enabled": False})
        session = start_session("bench", options, Path(scratch))
        yield session, Path(scratch)
        session.stop()
