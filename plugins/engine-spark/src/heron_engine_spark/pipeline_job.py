"""A pipeline as Spark jobs: the levels of the plan, one shuffle between two of them, and what the driver does after."""

from __future__ import annotations

import pickle
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

import cloudpickle
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sql

from heron_engine_spark.batch_log import BatchLog, BatchRecord
from heron_engine_spark.data_source import FORMAT, PipelineSource, load_plan, packed_plan, write_plan
from heron_engine_spark.parcels import (
    DONE,
    SPARK_SCHEMA,
    Counts,
    Failure,
    Logged,
    Progress,
    SlotSaved,
    unpacked,
)
from heron_engine_spark.spark_plan import SparkPlan
from heron_engine_spark.stage_task import Snapshot, run_level
from heron_streamlet.connectors.sinks import TransactionalSink
from heron_streamlet.connectors.transformer import StageContext

__all__ = ["BatchResult", "PipelineJob"]


@dataclass(frozen=True, slots=True)
class BatchResult:
    """What the driver learnt from a batch. Times are microseconds since the epoch, None without event time."""

    number: int
    rows: int = 0
    late: int = 0
    failed: int = 0
    failures: tuple[Failure, ...] = ()
    letters: tuple[bytes, ...] = ()
    dropped: int = 0
    keys: int = 0
    watermark_us: int | None = None


class Listener(Protocol):
    """Hears of batches; called by one thread at a time."""

    def show(self, line: str) -> None:
        """An element of `log`, before its batch is complete."""
        ...

    def keep(self, letters: Sequence[bytes]) -> None:
        """Store dead letters, before their batch is complete."""
        ...

    def done(self, result: BatchResult) -> None:
        """A batch is complete."""
        ...


class PipelineJob:
    """One pipeline in one session.

    Args:
        scratch: a folder of this machine, for the plan that Spark's planner reads.
    """

    def __init__(
        self, session: SparkSession, plan: SparkPlan, log: BatchLog, scratch: Path, listener: Listener
    ) -> None:
        """Check the checkpoint, and bring sinks to its last batch.

        Raises:
            ConfigError: when the checkpoint is that of another pipeline.
        """
        self._plan = log.begin(plan)
        self._session = session
        self._log = log
        self._listener = listener
        self._file = scratch / "plan"
        write_plan(self._plan, self._file)
        self._shared = session.sparkContext.broadcast(packed_plan(self._plan))
        session.dataSource.register(PipelineSource)
        self._record = log.newest()
        self._sinks = _sinks(self._plan)
        for sink in self._sinks:
            sink.restore(self._record.number)
        self.ended = threading.Event()
        if self._record.ended:
            self.ended.set()

    @property
    def slots(self) -> int:
        """The number of tasks behind a shuffle: that of the checkpoint, if it has state."""
        return self._plan.slots

    def run_batch(self) -> None:
        """Process all sources to their ends, as one batch."""
        if self.ended.is_set():
            return
        self.process(self._session.read.format(FORMAT).option("plan", str(self._file)).load(), 1)

    def stream(self, idle_s: float) -> DataFrame:
        """The sources as a stream, for `process`."""
        reader = self._session.readStream.format(FORMAT).option("plan", str(self._file))
        return reader.option("checkpoint", self._log.folder.uri).option("idle_s", str(idle_s)).load()

    def process(self, read: DataFrame, number: int) -> None:
        """Process a batch. One that is complete already was interrupted while its sinks committed."""
        if number > self._record.number:
            self._complete(number, self._collected(read, number))
        for sink in self._sinks:
            sink.commit(number)
        if self._record.ended:
            self.ended.set()

    def _collected(self, read: DataFrame, number: int) -> list[Any]:
        plan = self._plan
        snapshot = Snapshot(number, self._record.versions, self._log.folder if plan.saves else None)
        frame = read
        for level in range(1, plan.levels):
            run = _level_function(self._shared, level, snapshot)
            frame = frame.repartitionById(plan.slots, "slot").mapInArrow(run, SPARK_SCHEMA)
        found = frame.where(sql.col("level") == DONE).select("body").collect()
        return [unpacked(bytes(row.body)) for row in found]

    def _complete(self, number: int, reports: Sequence[Any]) -> None:
        partitions, versions = dict(self._record.partitions), dict(self._record.versions)
        result = BatchResult(number)
        ended = True
        for each in reports:
            if isinstance(each, Logged):
                for line in each.lines:
                    self._listener.show(line)
            elif isinstance(each, Progress):
                own = self._plan.partitions[each.partition]
                partitions[own.operator, own.name] = each.state
                result = replace(result, rows=result.rows + each.rows)
                ended = ended and each.ended
            elif isinstance(each, SlotSaved):
                versions[each.operator, each.slot] = each.version
            elif isinstance(each, Counts):
                result = _added(result, each)
        if result.letters:
            self._listener.keep(result.letters)
        self._record = BatchRecord(number, partitions, versions, result.rows, ended)
        self._log.write(self._record)
        marks = [each.watermark_us for each in versions.values() if each.watermark_us is not None]
        keys = sum(each.keys for each in versions.values())
        self._listener.done(replace(result, keys=keys, watermark_us=min(marks, default=None)))


def _added(result: BatchResult, counts: Counts) -> BatchResult:
    return replace(
        result,
        late=result.late + counts.late,
        failed=result.failed + counts.failed,
        failures=(*result.failures, *counts.failures),
        letters=(*result.letters, *counts.letters),
        dropped=result.dropped + counts.dropped,
    )


def _level_function(
    shared: Any,  # noqa: ANN401  # a broadcast variable
    level: int,
    snapshot: Snapshot,
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def run(arrived: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return run_level(load_plan(shared.value), level, snapshot, arrived)

    return run


def _sinks(plan: SparkPlan) -> list[TransactionalSink[Any]]:
    """A copy of each sink with transactions for each slot: the driver commits what the tasks have prepared."""
    found: list[TransactionalSink[Any]] = []
    for node in plan.transactions():
        for slot in range(plan.slots):
            sink: TransactionalSink[Any] = pickle.loads(cloudpickle.dumps(node.operator)).sink  # noqa: S301  # a copy
            sink.setup(StageContext(node.name, slot, plan.slots, plan.config, slot))
            found.append(sink)
    return found
