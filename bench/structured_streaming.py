"""Count words with Spark's Structured Streaming: ``python -m bench.structured_streaming WHAT MASTER SETTINGS``.

The count is ``groupBy("word").count()`` in update mode, or a Python function whose state is the count of its word
(``applyInPandasWithState``). It runs in a separate process, which prints one number or list as JSON. A source of Spark
makes the words without a limit. The counts go nowhere, or to the driver.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from itertools import cycle, pairwise
from pathlib import Path
from typing import TYPE_CHECKING

from bench.findings import Pace
from bench.peers.peer import PeerUnavailableError
from bench.records import BenchError
from heron.clock import monotonic_s
from heron_testing_servers.install import ServerNotInstalledError, installed, python_packages

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.pandas._typing import DataFrameLike
    from pyspark.sql.streaming.listener import StreamingQueryProgress
    from pyspark.sql.streaming.query import StreamingQuery
    from pyspark.sql.streaming.state import GroupState

__all__ = ["VARIANTS", "Variant", "check_counts", "lateness_of", "lateness_s", "words_per_s"]

_CORES = 2
_LOCAL = f"local[{_CORES}]"
_QUICK = {"spark.sql.shuffle.partitions": "1"}
_DISTINCT = 5_000  # as in the bench topologies
_WITHIN_S = 120.0
_SETTINGS = {
    "spark.sql.shuffle.partitions": str(_CORES),
    "spark.default.parallelism": str(_CORES),
    "spark.sql.adaptive.enabled": "false",  # not used in streaming, but costs planning time
    "spark.ui.enabled": "false",
    "spark.sql.streaming.metricsEnabled": "false",
    "spark.sql.streaming.minBatchesToRetain": "2",
    "spark.driver.memory": "2g",
    "spark.executor.memory": "2g",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.log.level": "ERROR",
}


@dataclass(frozen=True, slots=True)
class Variant:
    """A variant of the count: `rows` in a batch, `made` and `counted` by "spark" itself or in "python"."""

    rows: int
    made: str
    counted: str = "spark"
    master: str = _LOCAL
    settings: Mapping[str, str] = field(default_factory=dict)


# The default is 10,000 rows in an Arrow batch, which is slower.
_ARROW = {
    "spark.sql.execution.pythonUDF.arrow.enabled": "true",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "50000",
}

VARIANTS = {
    "Structured Streaming, words of its own": Variant(20_000_000, "spark"),
    "Structured Streaming, words from Python": Variant(4_000_000, "python", settings=_ARROW),
    "Structured Streaming, words and counts in Python": Variant(1_000_000, "python", "python", settings=_ARROW),
}
"""The variants by their names in the findings."""


def words_per_s(pace: Pace, variant: Variant) -> float:
    """Return the words that Spark counts a second.

    Raises:
        PeerUnavailableError: when the packages that it needs cannot be installed.
        BenchError: when it fails, or counts wrongly.
    """
    asked = {key: value for key, value in asdict(variant).items() if key != "master"}
    return float(str(_run_module("throughput", variant.master, pace, asked)))


def lateness_s(pace: Pace, rate: int) -> list[float]:
    """Return for each word, at `rate` words a second, the seconds from when it was due until the result of its batch.

    Raises:
        BenchError: when it fails.
    """
    found = _run_module("latency", _LOCAL, pace, {"rate": rate, "settings": dict(_QUICK)})
    return [float(each) for each in found] if isinstance(found, list) else []


def lateness_of(batches: Sequence[tuple[float, float]], rate: int) -> list[tuple[float, float]]:
    """Return ``(due, late)`` in seconds of each word. `batches` are pairs: end of a batch, due time of its newest word.

    A batch contains the words that were due since the newest word of the batch before. The start of the first batch is
    unknown, so its words are left out.
    """
    found: list[tuple[float, float]] = []
    for (_, before_s), (done_s, newest_s) in pairwise(batches):
        dues = (newest_s - number / rate for number in range(round((newest_s - before_s) * rate)))
        found += [(due_s, done_s - due_s) for due_s in dues]
    return found


def check_counts(counts: Mapping[str, int], words: int) -> None:
    """Compare counts by word with those of `words` words in all, which repeat the distinct words equally often.

    Raises:
        BenchError: when a count differs.
    """
    expected = {f"word{number}": words // _DISTINCT for number in range(_DISTINCT)}
    if words % _DISTINCT or counts != expected:
        wrong = sum(counts.get(word) != expected.get(word) for word in counts.keys() | expected)
        msg = f"Structured Streaming: {wrong} of {_DISTINCT} counts differ: {sum(counts.values())} of {words} words"
        raise BenchError(msg)


def _run_module(what: str, master: str, pace: Pace, asked: dict[str, object]) -> object:
    """Run this module in a process. Its warm-up is longer than that of other benches, because a JVM compiles first."""
    request = {**asked, "warm_up_s": 6 * pace.warm_up_s, "window_s": 2 * pace.window_s}
    command = [sys.executable, "-m", "bench.structured_streaming", what, master, json.dumps(request)]
    # PySpark uses these for fast exchange with Python if they are installed; it would be slower without them.
    try:
        extra = installed("pyarrow-26.0.1", python_packages("pyarrow==26.0.1", "pandas==3.1.1"))
    except ServerNotInstalledError as error:
        raise PeerUnavailableError(str(error)) from error
    folders = [*map(str, extra.glob("lib/python*/site-packages")), os.environ.get("PYTHONPATH", "")]
    paths = os.pathsep.join(each for each in folders if each)
    environment = {**os.environ, "PYTHONPATH": paths, "PYSPARK_PYTHON": sys.executable}
    try:
        ran = subprocess.run(
            command, capture_output=True, text=True, check=False, timeout=2 * _WITHIN_S, env=environment
        )
    except subprocess.TimeoutExpired as error:
        msg = f"Structured Streaming did not finish within {2 * _WITHIN_S:g} s"
        raise BenchError(msg) from error
    if ran.returncode != 0:
        msg = f"Structured Streaming failed: {ran.stderr.strip()[-2000:]}"
        raise BenchError(msg)
    found: object = json.loads(ran.stdout.splitlines()[-1])
    return found


@contextmanager
def _session(master: str, settings: dict[str, str]) -> Iterator[SparkSession]:
    from pyspark.sql import SparkSession  # noqa: PLC0415  # the bench itself runs without Spark

    builder = SparkSession.builder.master(master).appName("structured streaming")
    for name, value in {**_SETTINGS, **settings}.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    try:
        yield session
    finally:
        session.stop()


def _words(session: SparkSession, rows: int, made: str) -> DataFrame:
    from pyspark.sql import functions  # noqa: PLC0415

    numbers = session.readStream.format("rate-micro-batch").option("rowsPerBatch", rows).option("numPartitions", _CORES)
    number = functions.pmod(functions.col("value") * 7919, functions.lit(_DISTINCT))
    if made == "python":
        word = functions.udf(lambda each: f"word{each}", "string")(number)
    else:
        word = functions.concat(functions.lit("word"), number.cast("string"))
    return numbers.load().select(word.alias("word"))


def _count(key: tuple[str], frames: Iterator[DataFrameLike], state: GroupState) -> Iterator[DataFrameLike]:
    """Use the fastest way: the length of each group, because all words of a group are equal."""
    from pandas import DataFrame  # noqa: PLC0415

    total = (state.get[0] if state.exists else 0) + sum(map(len, frames))
    state.update((total,))
    yield DataFrame({"word": [key[0]], "count": [total]})


def _counts(words: DataFrame, counted: str) -> DataFrame:
    from pyspark.sql.streaming.state import GroupStateTimeout  # noqa: PLC0415

    groups = words.groupBy("word")
    if counted == "spark":
        return groups.count()
    return groups.applyInPandasWithState(
        _count, "word string, count long", "count long", "update", GroupStateTimeout.NoTimeout
    )


def _rows_per_s(session: SparkSession, rows: int, made: str, counted: str, warm_up_s: float, window_s: float) -> float:
    """Return the rate between the starts of two batches around the window."""
    counts = _counts(_words(session, rows, made), counted)
    with tempfile.TemporaryDirectory() as folder:
        writer = counts.writeStream.format("noop").outputMode("update").option("checkpointLocation", folder)
        query = writer.start()
        try:
            _until(query, lambda: len(query.recentProgress) > 2)
            _wait(query, warm_up_s)
            first = _progress(query)
            _wait(query, window_s)
            _until(query, lambda: _progress(query).batchId > first.batchId)
            last = _progress(query)
        finally:
            query.stop()
        check_counts(*_counted(session, Path(folder), rows, counted))
    return (last.batchId - first.batchId) * rows / (_second(last.timestamp) - _second(first.timestamp))


def _counted(session: SparkSession, checkpoint: Path, rows: int, counted: str) -> tuple[dict[str, int], int]:
    """Return the counts in the state of a stopped query, and the number of words in its committed batches.

    The sink keeps no counts. Reading the state afterwards adds nothing to the measured path.
    """
    committed = max(int(path.name) for path in (checkpoint / "commits").iterdir() if path.name.isdigit()) + 1
    count = "value.count" if counted == "spark" else "value.groupState.count"
    state = session.read.format("statestore").load(str(checkpoint)).select("key.word", count)
    return dict(map(tuple, state.collect())), committed * rows


def _lateness(session: SparkSession, rate: int, warm_up_s: float, window_s: float) -> list[float]:
    """Return the seconds from due time to result for each word that was due in the window."""
    from pyspark.sql import functions  # noqa: PLC0415

    batches: list[tuple[float, float]] = []

    def take(counts: DataFrame, _batch: int) -> None:
        (newest,) = counts.agg(functions.max("due")).collect()
        if newest[0] is not None:
            batches.append((monotonic_s(), float(newest[0])))

    with _sending(rate) as port, tempfile.TemporaryDirectory() as folder:
        lines = session.readStream.format("socket").option("host", "127.0.0.1").option("port", port).load()
        parts = functions.split("value", " ")
        words = lines.select(parts[0].cast("double").alias("due"), parts[1].alias("word"))
        counts = words.groupBy("word").agg(functions.count("*"), functions.max("due").alias("due"))
        writer = counts.writeStream.foreachBatch(take).outputMode("update").option("checkpointLocation", folder)
        query = writer.start()
        try:
            _until(query, lambda: len(batches) > 2)
            _wait(query, warm_up_s)
            start_s = monotonic_s()
            _wait(query, window_s)
            end_s = monotonic_s()
            _until(query, lambda: batches[-1][1] > end_s)
        finally:
            query.stop()
    return [late_s for due_s, late_s in lateness_of(batches, rate) if start_s <= due_s < end_s]


@contextmanager
def _sending(rate: int) -> Iterator[int]:
    """Yield a port that sends ``DUE WORD`` lines at that rate to its client."""
    over = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=_send, args=(listener, rate, over), daemon=True).start()
        port: int = listener.getsockname()[1]
        try:
            yield port
        finally:
            over.set()


def _send(listener: socket.socket, rate: int, over: threading.Event) -> None:
    connection, _ = listener.accept()
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    words = cycle([f"word{number * 7919 % _DISTINCT}" for number in range(_DISTINCT)])
    start_s, sent = monotonic_s(), 0
    with connection:
        while not over.wait(0.001):
            due = int((monotonic_s() - start_s) * rate)
            lines = [f"{start_s + number / rate:.6f} {next(words)}\n" for number in range(sent, due)]
            sent = due
            try:
                connection.sendall("".join(lines).encode())
            except OSError:
                return


def _progress(query: StreamingQuery) -> StreamingQueryProgress:
    found = query.lastProgress
    if found is None:
        msg = "Structured Streaming has finished no batch"
        raise BenchError(msg)
    return found


def _second(timestamp: str) -> float:
    from datetime import datetime  # noqa: PLC0415

    return datetime.fromisoformat(timestamp).timestamp()


def _wait(query: StreamingQuery, seconds: float) -> None:
    until_s = monotonic_s() + seconds
    _until(query, lambda: monotonic_s() >= until_s)


def _until(query: StreamingQuery, holds: Callable[[], object]) -> None:
    deadline_s, pause = monotonic_s() + _WITHIN_S, threading.Event()
    while not holds():
        if monotonic_s() > deadline_s or not query.isActive:
            msg = f"Structured Streaming stopped or took too long: {query.exception() or query.lastProgress}"
            raise BenchError(msg)
        pause.wait(0.02)


if __name__ == "__main__":
    what, master, request = sys.argv[1:]
    given = json.loads(request)
    with _session(master, given.pop("settings")) as spark:
        found = _rows_per_s(spark, **given) if what == "throughput" else _lateness(spark, **given)
    sys.stdout.write(json.dumps(found) + "\n")
