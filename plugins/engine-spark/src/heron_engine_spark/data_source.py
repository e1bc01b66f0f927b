"""The sources of a pipeline as a Python data source of Spark: one input partition for each source partition.

The offset of a stream is the number of a batch. The record of the batch has the positions of the sources at its end. A
batch that Spark repeats reads what its first attempt has pinned (`heron_engine_spark.source_task.ReadPin`).
"""

from __future__ import annotations

import pickle
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import cloudpickle
import pyarrow as pa
from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    InputPartition,
)
from pyspark.sql.streaming.datasource import ReadLimit, SupportsTriggerAvailableNow
from pyspark.sql.types import StructType

from heron.api.capture import capture_topologies
from heron_engine_spark.batch_log import BatchLog
from heron_engine_spark.checkpoint_folder import CheckpointFolder
from heron_engine_spark.parcels import SPARK_SCHEMA, batches
from heron_engine_spark.source_task import ReadPin, read_partition
from heron_engine_spark.spark_plan import SourcePartition, SparkPlan

__all__ = ["FORMAT", "PipelineSource", "load_plan", "packed_plan", "write_plan"]

FORMAT = "heron-pipeline"
_BATCH = "batch"


def packed_plan(plan: SparkPlan) -> bytes:
    """The plan for workers, with the arguments of the author's program."""
    return pickle.dumps((tuple(sys.argv), cloudpickle.dumps(plan)))


def write_plan(plan: SparkPlan, path: Path) -> None:
    """Write what `PipelineSource` reads: the partitions, which need no code of the author, and the plan."""
    path.write_bytes(pickle.dumps((plan.partitions, packed_plan(plan))))


_plans: dict[bytes, SparkPlan] = {}


def load_plan(packed: bytes) -> SparkPlan:
    """The plan; each worker loads it once.

    This imports the author's module, which may submit the pipeline again: that has no effect here.
    """
    plan = _plans.get(packed)
    if plan is None:
        argv, pickled = pickle.loads(packed)  # noqa: S301  # of this run
        sys.argv[:] = argv
        with capture_topologies():
            plan = cloudpickle.loads(pickled)
        _plans.clear()
        _plans[packed] = plan
    return plan


class _Partition(InputPartition):
    def __init__(self, number: int, state: bytes | None = None, pin: ReadPin | None = None) -> None:
        super().__init__(number)
        self.state, self.pin = state, pin


class _Reading:
    """What batch and stream have in common."""

    def __init__(self, options: Mapping[str, str]) -> None:
        partitions, self._plan = pickle.loads(Path(options["plan"]).read_bytes())  # noqa: S301  # of this run
        self._partitions: Sequence[SourcePartition] = partitions

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Read one source partition, on a worker."""
        assert isinstance(partition, _Partition)  # noqa: S101  # made below
        plan = load_plan(self._plan)
        return batches(read_partition(plan, int(partition.value), partition.state, partition.pin))


class _BatchReader(_Reading, DataSourceReader):
    def partitions(self) -> Sequence[InputPartition]:
        """One for each source partition, from its begin."""
        return [_Partition(number) for number in range(len(self._partitions))]


class _StreamReader(_Reading, DataSourceStreamReader, SupportsTriggerAvailableNow):
    def __init__(self, options: Mapping[str, str]) -> None:
        super().__init__(options)
        self._log = BatchLog(CheckpointFolder(options["checkpoint"]))
        self._idle_s = float(options["idle_s"])
        self._once = False
        self._begin: int | None = None

    def initialOffset(self) -> dict[str, Any]:  # Spark's name
        """Before the first batch."""
        return {_BATCH: 0}

    def prepareForTriggerAvailableNow(self) -> None:  # Spark's name
        """End when the sources have nothing more."""
        self._once = True

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:  # Spark's name
        """Another batch, unless all partitions have ended. After a batch without elements, wait a moment.

        With available-now, a batch of this run that has read nothing is the last; that of a former run says nothing.
        """
        del limit
        if self._begin is None:
            self._begin = start[_BATCH]
        record = self._log.read(start[_BATCH])
        if record.ended or (self._once and record.number > self._begin and not record.rows):
            return start
        if record.number and not record.rows:
            threading.Event().wait(self._idle_s)  # Spark has no longer trigger for a source without data
        return {_BATCH: start[_BATCH] + 1}

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        """One for each source partition, from where the batch before left it."""
        if start == end:
            return []
        states = self._log.read(start[_BATCH]).partitions
        return [
            _Partition(number, states.get((each.operator, each.name)), ReadPin(self._log.folder, end[_BATCH], each))
            for number, each in enumerate(self._partitions)
        ]


class PipelineSource(DataSource):
    """``spark.read.format("heron-pipeline")``."""

    @classmethod
    def name(cls) -> str:
        """The format."""
        return FORMAT

    def schema(self) -> str:
        """Of parcels."""
        return SPARK_SCHEMA

    def reader(self, schema: StructType) -> DataSourceReader:
        """For a batch."""
        del schema
        return _BatchReader(self.options)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # Spark's name
        """For a stream."""
        del schema
        return _StreamReader(self.options)
