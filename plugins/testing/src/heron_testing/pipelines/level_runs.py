"""Runs the levels of a plan in this process, as Spark would: parcels are shuffled by slot, and attempts may fail."""

from __future__ import annotations

import pickle
import random
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import cloudpickle
import pyarrow as pa

from heron.api import DeadLetter
from heron_engine_spark.batch_log import BatchLog, BatchRecord
from heron_engine_spark.checkpoint_folder import CheckpointFolder
from heron_engine_spark.failures import unpacked_letter
from heron_engine_spark.parcels import DONE, Counts, Failure, Logged, Progress, SlotSaved, record_batch, unpacked
from heron_engine_spark.source_task import ReadPin, read_partition
from heron_engine_spark.spark_plan import SparkPlan, spark_plan, spark_stages
from heron_engine_spark.stage_task import Snapshot, run_level
from heron_streamlet.connectors.sinks import TransactionalSink
from heron_streamlet.connectors.transformer import StageContext
from heron_streamlet.plan.graph import Graph

__all__ = ["LevelRun", "plan_of"]

Parcel = tuple[int, int, bytes]


def plan_of(
    graph: Graph, slots: int, run: str, row_limit: int | None = None, config: Mapping[str, object] | None = None
) -> SparkPlan:
    """A plan that saves its state, or without a limit one for a single batch."""
    limits = {"row_limit": row_limit, "saves": row_limit is not None, "config": config or {}}
    return spark_plan(spark_stages(graph), "pipeline", run, slots, 1024, **limits)


class LevelRun:
    """One pipeline.

    Args:
        chance: decides about attempts that fail and about the order of parcels; None for no failures.
    """

    def __init__(self, plan: SparkPlan, folder: Path, chance: random.Random | None = None) -> None:
        self.plan = plan
        self.log = BatchLog(CheckpointFolder(str(folder)))
        self.lines: list[str] = []
        self.late = 0
        self.failed = 0
        self.failures: list[Failure] = []
        self.letters: list[DeadLetter] = []
        self._chance = chance
        self._order = chance or random.Random(0)
        # Before tasks of this process set them up: a real driver has objects of its own.
        self._pickled = [(node.name, cloudpickle.dumps(node.operator)) for node in plan.transactions()]
        self._sinks = self._driver_sinks()

    def run(self) -> list[str]:
        """Process everything; return the lines of `log`, sorted."""
        record = self.log.newest()
        while not record.ended:
            record = self.batch(record)
        return sorted(self.lines)

    def batch(self, record: BatchRecord) -> BatchRecord:
        """Process one batch."""
        while self._chance is not None and self._chance.random() < 0.3:
            self._attempt(record, stops=True)  # it leaves files and what workers keep, and nothing else
        done = self._attempt(record, stops=False)
        record = self._complete(record, done)
        if self._chance is not None and self._chance.random() < 0.3:
            self._sinks = self._driver_sinks()  # the driver died between its record and its commits
        for sink in self._sinks:
            sink.commit(record.number)
        return record

    def _driver_sinks(self) -> list[TransactionalSink[Any]]:
        """The driver's copies, one for each slot, as a driver makes them when it starts."""
        found: list[TransactionalSink[Any]] = []
        for name, pickled in self._pickled:
            for slot in range(self.plan.slots):
                sink: TransactionalSink[Any] = pickle.loads(pickled).sink
                sink.setup(StageContext(name, slot, self.plan.slots, self.plan.config, slot))
                sink.restore(self.log.newest().number)
                found.append(sink)
        return found

    def _attempt(self, record: BatchRecord, *, stops: bool) -> list[Parcel]:
        plan, number = self.plan, record.number + 1
        last = self._order.randrange(plan.levels) if stops else plan.levels
        waiting: list[Parcel] = []
        for index, each in enumerate(plan.partitions):
            pin = ReadPin(self.log.folder, number, each) if plan.saves else None
            waiting += read_partition(plan, index, record.partitions.get((each.operator, each.name)), pin)
        folder = self.log.folder if plan.saves else None
        snapshot = Snapshot(number, record.versions, folder)
        for level in range(1, min(plan.levels, last + 1)):
            waiting = self._shuffled(waiting, partial(run_level, plan, level, snapshot))
        return [each for each in waiting if each[0] == DONE]

    def _shuffled(
        self, parcels: Sequence[Parcel], run: Callable[[list[pa.RecordBatch]], Iterable[pa.RecordBatch]]
    ) -> list[Parcel]:
        """The parcels of one task stay in order; those of several tasks mix."""
        by_slot: dict[int, list[Parcel]] = defaultdict(list)
        for parcel in parcels:
            by_slot[parcel[1]].append(parcel)
        out: list[Parcel] = []
        for own in by_slot.values():
            size = self._order.randrange(1, 5)
            cut = [record_batch(own[at : at + size]) for at in range(0, len(own), size)]
            for batch in run(cut):
                out += zip(*(column.to_pylist() for column in batch.columns), strict=True)
        return out

    def _complete(self, record: BatchRecord, done: Sequence[Parcel]) -> BatchRecord:
        partitions, versions = dict(record.partitions), dict(record.versions)
        ended = True
        for _, _, body in done:
            each = unpacked(body)
            if isinstance(each, Logged):
                self.lines += each.lines
            elif isinstance(each, Progress):
                own = self.plan.partitions[each.partition]
                partitions[own.operator, own.name] = each.state
                ended = ended and each.ended
            elif isinstance(each, SlotSaved):
                versions[each.operator, each.slot] = each.version
            elif isinstance(each, Counts):
                self.late += each.late
                self.failed += each.failed
                self.failures += each.failures
                self.letters += map(unpacked_letter, each.letters)
        new = replace(record, number=record.number + 1, partitions=partitions, versions=versions, ended=ended)
        self.log.write(new)
        return new
