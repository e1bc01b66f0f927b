"""Reads one source partition and runs the stage that begins with it: level 0 of a job."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from operator import length_hint
from typing import Any

from heron.author_text import short_text
from heron.clock import Clock, SystemClock
from heron.errors import UserCodeError
from heron_engine_spark.checkpoint_folder import CheckpointFolder
from heron_engine_spark.parcels import DONE, Mark, PartitionState, Progress, packed, unpacked
from heron_engine_spark.spark_host import SparkHost
from heron_engine_spark.spark_plan import SourcePartition, SparkPlan
from heron_streamlet.connectors.sources import PlacedReader, Reader
from heron_streamlet.connectors.transformer import StageContext
from heron_streamlet.failures import OperatorError
from heron_streamlet.plan.operators import idle_after_s
from heron_streamlet.runtime.stage_code import StageCode
from heron_streamlet.windowing.event_time import source_watermark

__all__ = ["ReadPin", "read_partition"]

_READ_AT_ONCE = 1024
_PAUSE, _PAUSE_S = threading.Event(), 0.05  # while a source has no element

Parcels = Iterator[tuple[int, int, bytes]]

_readers: dict[tuple[str, int], tuple[bytes, _Partition]] = {}
"""Partitions that this worker has read, as they were at the end; opening one again may mean to skip all before."""


@dataclass(frozen=True, slots=True)
class ReadOutcome:
    """How far a batch read a partition."""

    rows: int
    state: PartitionState
    time_us: int | None
    idle: bool


class ReadPin:
    """The place of the outcome of one read: of a batch, for one source partition.

    The partition is known by its name: in the next run its number may be that of another one.
    """

    def __init__(self, folder: CheckpointFolder, batch: int, partition: SourcePartition) -> None:
        own = hashlib.sha256(f"{partition.operator}/{partition.name}".encode("utf-8", "surrogatepass")).hexdigest()
        self._folder = folder
        self._name = f"reads/{batch:08}-{own[:32]}"

    def find(self) -> ReadOutcome | None:
        """The outcome of an earlier attempt."""
        body = self._folder.find(self._name)
        return None if body is None else unpacked(body)

    def write(self, outcome: ReadOutcome) -> None:
        """Keep the outcome for later attempts."""
        self._folder.write(self._name, packed(outcome))


class _Partition:
    """An open partition with the code of its stage."""

    def __init__(self, plan: SparkPlan, number: int, state: PartitionState, clock: Clock) -> None:
        own = plan.partitions[number]
        stage = plan.stage(own.node)
        siblings = [index for index, each in enumerate(plan.partitions) if each.node == own.node]
        self.plan, self.number, self.state, self.clock = plan, number, state, clock
        self.host = SparkHost(plan, stage, number % plan.slots)
        self.code = StageCode(stage, self.host)

        def context(name: str) -> StageContext:
            return StageContext(name, siblings.index(number), len(siblings), plan.config)

        self.host.set_up(context)
        self._times = self.host.event_times()
        self.clocks = {
            node: each.clock(state.latest_us.get(node), self.clock.wall_s) for node, each in self._times.items()
        }
        self.host.component.clocks = self.clocks
        self._feed: Callable[[Iterator[Any]], None] = self.code.feed()
        self._before: object = None
        self.reader: Reader[Any] = self.host.source().open(own.name, state.position, context(own.operator))

    def read(self, pin: ReadPin | None) -> Parcels:
        """Reads until the limits of the plan, the end, or until there is nothing now; or as an earlier attempt did."""
        plan = self.plan
        pinned = None if pin is None else pin.find()
        rows, ended = 0, self.state.ended
        for elements in self._elements(None if pinned is None else pinned.rows):
            if elements is None:
                ended = True
            else:
                self._process(elements)
                rows += len(elements)
                yield from self.host.parcels()
        if pinned is None:
            latest = {node: each.latest_us for node, each in self.clocks.items()}
            read_s = self.clock.wall_s() if rows or not self.state.read_s else self.state.read_s
            state = PartitionState(self.reader.position, latest, ended, read_s)
            pinned = ReadOutcome(rows, state, *self._mark(state))
            if pin is not None:
                pin.write(pinned)
        elif rows != pinned.rows:
            own = plan.partitions[self.number]
            msg = (
                f"source {own.operator!r}, partition {own.name!r}: {pinned.rows} elements were read, and {rows} when "
                "it was read again; a source must give the same elements from a position"
            )
            raise UserCodeError(msg)
        self.state = pinned.state
        for error in self.host.flush():
            self.host.failed(error)
        yield from self.host.parcels(1)
        for target in plan.targets(self.host.stage):
            body = packed(Mark(target, pinned.time_us, pinned.idle, self.state.ended))
            for slot in range(plan.slots):
                yield plan.level_of[target], slot, body
        saved = packed(self.state)
        yield DONE, self.number % plan.slots, packed(Progress(self.number, saved, rows, self.state.ended))
        yield DONE, self.number % plan.slots, packed(self.host.take_counts())

    def _elements(self, wanted: int | None) -> Iterator[Sequence[Any] | None]:
        """What this batch reads, some elements at a time; None at the end of the partition.

        `wanted` is the number of elements that an earlier attempt read.
        """
        plan = self.plan
        left = plan.row_limit if wanted is None else wanted
        until_s = self._until_s() if wanted is None else None
        ended = self.state.ended
        while not ended and (left is None or left > 0) and (until_s is None or self.clock.monotonic_s() < until_s):
            before = self.reader.position
            elements = self.reader.read(_READ_AT_ONCE if left is None else min(left, _READ_AT_ONCE))
            ended = elements is None
            if ended or elements:
                left = None if left is None else left - len(elements or ())
                self._before = before
                yield elements
            elif plan.saves and wanted is None:
                return
            else:  # a batch reads to the end, and a second attempt as far as the first
                _PAUSE.wait(_PAUSE_S)

    def close(self) -> None:
        """Closes reader and authors' objects."""
        self.reader.close()
        self.host.close()

    def _process(self, elements: Sequence[Any]) -> None:
        """Feeds the stage; after a failure it goes on with the next element."""
        name, rest = self.plan.partitions[self.number].name, iter(elements)

        def place() -> str:
            number = len(elements) - length_hint(rest)
            if isinstance(self.reader, PlacedReader):
                return f"partition {name!r}, position {short_text(self.reader.position_of(max(0, number - 1)), 200)}"
            return f"partition {name!r}, element {number} behind position {short_text(self._before, 200)}"

        self.host.origin = place
        while True:
            try:
                self._feed(rest)
            except OperatorError as error:
                self.host.failed(error)
            else:
                break
        self.host.origin = None

    def _mark(self, state: PartitionState) -> tuple[int | None, bool]:
        """The watermark behind what was read, and whether the partition is idle."""
        mark: tuple[int, bool] | None = None
        if self.clocks:
            silent_s = self.clock.wall_s() - state.read_s
            idle_s = silent_s if silent_s >= idle_after_s(self._times.values()) else 0.0
            mark = source_watermark([(min(each.bound_us for each in self.clocks.values()), idle_s)])
        return mark or (None, False)

    def _until_s(self) -> float | None:
        limit_s = self.plan.time_limit_s
        return None if limit_s is None else self.clock.monotonic_s() + limit_s


def read_partition(plan: SparkPlan, number: int, packed_state: bytes | None, pin: ReadPin | None = None) -> Parcels:
    """Reads a partition from where the last batch left it.

    Spark may run the task again when its output is lost, while others have used that output. So the first attempt that
    is complete pins how far it read.
    """
    key = plan.run, number
    kept_state, partition = _readers.pop(key, (b"", None))
    if partition is not None and kept_state != packed_state:
        partition.close()  # another worker has read it since then
        partition = None
    if partition is None:
        state = unpacked(packed_state) if packed_state else PartitionState()
        partition = _Partition(plan, number, state, SystemClock())
    try:
        yield from partition.read(pin)
    except BaseException:
        partition.close()
        raise
    if plan.saves and not partition.state.ended:
        _readers[key] = packed(partition.state), partition
    else:
        partition.close()
