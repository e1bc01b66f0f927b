"""Runs the stages of one level for one slot, behind a shuffle."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from heron.clock import Clock, SystemClock
from heron_engine_spark.checkpoint_folder import CheckpointFolder
from heron_engine_spark.parcels import DONE, Mark, Rows, SlotSaved, SlotVersion, batches, packed, unpacked
from heron_engine_spark.slot_states import SlotStates
from heron_engine_spark.spark_host import SparkHost
from heron_engine_spark.spark_plan import SparkPlan
from heron_streamlet.connectors.transformer import StageContext
from heron_streamlet.failures import OperatorError
from heron_streamlet.plan.operators import Keyed, Windowed, Write
from heron_streamlet.plan.stages import Stage
from heron_streamlet.runtime.early_results import keyed_stage
from heron_streamlet.runtime.keyed_stage import KeyedStage
from heron_streamlet.runtime.stage_code import StageCode, row_prologue
from heron_streamlet.windowing.event_time import END_OF_TIME_US

__all__ = ["Snapshot", "run_level"]

Parcels = Iterator[tuple[int, int, bytes]]


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Where a batch begins: its number, and the states of the batch before, by operator and slot."""

    batch: int
    versions: Mapping[tuple[str, int], SlotVersion]
    folder: CheckpointFolder | None


_kept: dict[tuple[str, int, int], _StageRun] = {}
"""Stages that this worker has run: another batch may go on with their state, if nobody else has changed it."""


def run_level(
    plan: SparkPlan, level: int, snapshot: Snapshot, arrived: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Runs the stages of a level; rows of later levels pass."""
    task = _LevelTask(plan, snapshot)
    for batch in arrived:
        own = pc.equal(batch.column(0), level)
        others = batch.filter(pc.invert(own))
        if others.num_rows:
            yield others
        mine = batch.filter(own)
        for slot, body in zip(mine.column(1), mine.column(2), strict=True):
            yield from batches(task.receive(slot.as_py(), unpacked(body.as_buffer())))
    yield from batches(task.finish())


class _LevelTask:
    def __init__(self, plan: SparkPlan, snapshot: Snapshot) -> None:
        self._plan, self._snapshot = plan, snapshot
        self._runs: dict[tuple[int, int], _StageRun] = {}

    def receive(self, slot: int, parcel: Rows | Mark) -> Parcels:
        """Processes rows, or keeps a mark."""
        run = self._run(parcel.target, slot)
        if isinstance(parcel, Mark):
            run.marks.append(parcel)
            return
        run.receive(parcel)
        yield from run.host.parcels()

    def finish(self) -> Parcels:
        """All rows are there: windows close, states are saved, transactions are prepared."""
        for run in self._runs.values():
            yield from run.finish()
        for key, run in self._runs.items():
            if self._plan.saves and not run.writes:
                _kept[self._plan.run, *key] = run
            else:
                run.host.close()

    def _run(self, head: int, slot: int) -> _StageRun:
        run = self._runs.get((head, slot))
        if run is None:
            kept = _kept.pop((self._plan.run, head, slot), None)
            if kept is None or not kept.continues(self._snapshot):
                kept = _StageRun(self._plan, self._plan.stage(head), slot, self._snapshot)
            run = self._runs[head, slot] = kept
        return run


class _StageRun:
    """A stage in one slot.

    Attributes:
        marks: the watermarks of the upstream tasks in this batch.
        writes: whether it has sinks, which are closed after each batch: they may show their data only then.
    """

    def __init__(
        self, plan: SparkPlan, stage: Stage, slot: int, snapshot: Snapshot, clock: Clock | None = None
    ) -> None:
        self.plan, self.stage, self.slot = plan, stage, slot
        self.clock = clock or SystemClock()
        self.writes = any(isinstance(node.operator, Write) for node in stage.nodes)
        self.host = SparkHost(plan, stage, slot)
        self.code = StageCode(stage, self.host)
        self.marks: list[Mark] = []
        self.host.set_up(lambda name: StageContext(name, slot, plan.slots, plan.config, slot))
        for sink in self.host.transactions:
            sink.restore(snapshot.batch - 1)  # of an attempt that failed
        self._snapshot = snapshot
        self._states: SlotStates | None = None
        self._keyed: KeyedStage | None = None
        self._process: Callable[..., None] | None = None
        if isinstance(stage.head.operator, (Keyed, Windowed)):
            version = snapshot.versions.get((stage.head.name, slot), SlotVersion())
            self._version = version
            self._states = SlotStates(snapshot.folder, version)
            # A batch gives the early results of the windows that it has changed, whoever runs it again.
            self._keyed = keyed_stage(self.host.keyed_operator(), self.code, self._states, repeats=False)
            if version.watermark_us is not None:
                self._keyed.watermark_us = version.watermark_us
        else:
            self._process = self.code.process("row", row_prologue(self.code.stage, "row"))

    def continues(self, snapshot: Snapshot) -> bool:
        """Begin another batch; returns whether the state here is that of the snapshot."""
        self._snapshot = snapshot
        if self._keyed is None:
            return True
        return self._version == snapshot.versions.get((self.stage.head.name, self.slot), SlotVersion())

    def receive(self, parcel: Rows) -> None:
        """Processes rows, one after the other; those that fail are counted and skipped."""
        process = self._row_function(parcel.position)
        for row in parcel.rows:
            try:
                process(row)
            except OperatorError as error:
                self.host.failed(error)

    def finish(self) -> Parcels:
        """Ends the batch."""
        mark = combined(self.marks)
        self.marks = []
        if self._keyed is not None:
            failed = self._keyed.reach(self._watermark_us(mark))
            for error in failed + self._keyed.give_early(math.inf):
                self.host.failed(error)
        for error in self.host.flush():
            self.host.failed(error)
        for sink in self.host.transactions:
            sink.prepare(self._snapshot.batch)
        yield from self.host.parcels(1)
        for target in self.plan.targets(self.stage):
            body = packed(Mark(target, mark.time_us, mark.idle, mark.ended))
            for slot in range(self.plan.slots):
                yield self.plan.level_of[target], slot, body
        if self._keyed is not None and self._states is not None:
            operator, batch = self.stage.head.name, self._snapshot.batch
            self._version = self._states.save(operator, self.slot, batch, self._keyed.watermark_us)
            yield DONE, self.slot, packed(SlotSaved(operator, self.slot, self._version))
        yield DONE, self.slot, packed(self.host.take_counts())

    def _watermark_us(self, mark: Mark) -> int:
        assert self._keyed is not None  # noqa: S101  # the caller has looked
        if mark.ended:
            return END_OF_TIME_US
        if self.stage.by_clock:
            return round(self.clock.wall_s() * 1_000_000)
        return self._keyed.watermark_us if mark.time_us is None else max(mark.time_us, self._keyed.watermark_us)

    def _row_function(self, position: int) -> Callable[[tuple[Any, ...]], object]:
        if self._process is not None:
            return self._process
        keyed = self._keyed
        assert keyed is not None  # noqa: S101  # a stage is one of the two
        if self.stage.by_clock:
            add = keyed.add_by_clock
            now_us = max(round(self.clock.wall_s() * 1_000_000), keyed.watermark_us)

            def by_clock(row: tuple[Any, ...]) -> None:
                add(row[0], position, row[1], now_us)

            return by_clock
        return keyed.receive


def combined(marks: Iterable[Mark]) -> Mark:
    """The watermark of a task from those of its upstream tasks, as `heron.instance.input.watermarks` finds it.

    Those that have ended hold nothing back, nor do idle ones while others are active. One that has no event time yet
    holds it back.
    """
    marks = list(marks)
    running = [each for each in marks if not each.ended]
    if not running:
        return Mark(0, END_OF_TIME_US, ended=True)
    active = [each.time_us for each in running if not each.idle]
    if active:
        return Mark(0, None if None in active else min(time for time in active if time is not None))
    return Mark(0, max((each.time_us for each in running if each.time_us is not None), default=None), idle=True)
