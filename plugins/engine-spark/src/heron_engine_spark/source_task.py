"""Reads one source partition and runs the stage that begins with it: level 0 of a job."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

from heron.clock import Clock, SystemClock
from heron_engine_spark.failures import Failures
from heron_engine_spark.parcels import DONE, Mark, PartitionState, Progress, packed, unpacked
from heron_engine_spark.spark_host import SparkHost
from heron_engine_spark.spark_plan import SparkPlan
from heron_streamlet.event_time import START_OF_TIME_US, EventClock, source_watermark
from heron_streamlet.operators import AssignEventTime, idle_after_s
from heron_streamlet.sources import Reader
from heron_streamlet.stage_code import StageCode
from heron_streamlet.transformer import StageContext

__all__ = ["read_partition"]

_READ_AT_ONCE = 1024
_PAUSE, _PAUSE_S = threading.Event(), 0.05  # while a source has no element

Parcels = Iterator[tuple[int, int, bytes]]

_readers: dict[tuple[str, int], tuple[bytes, _Partition]] = {}
"""Partitions that this worker has read, as they were at the end; opening one again may mean to skip all before."""


class _Partition:
    """An open partition with the code of its stage."""

    def __init__(self, plan: SparkPlan, number: int, state: PartitionState, clock: Clock) -> None:
        own = plan.partitions[number]
        stage = plan.stage(own.node)
        siblings = [index for index, each in enumerate(plan.partitions) if each.node == own.node]
        self.plan, self.number, self.state, self.clock = plan, number, state, clock
        self.host = SparkHost(plan, stage, number % plan.slots)
        self.code = StageCode(stage, self.host)
        self.failures = Failures()

        def context(name: str) -> StageContext:
            return StageContext(name, siblings.index(number), len(siblings), plan.config)

        self.host.set_up(context)
        self._times = self.host.event_times()
        self.clocks = {node: self._clock(each, state.latest_us.get(node)) for node, each in self._times.items()}
        self.host.component.clocks = self.clocks
        self._feed: Callable[[Iterator[Any]], None] = self.code.feed()
        self.reader: Reader[Any] = self.host.source().open(own.name, state.position, context(own.operator))

    def read(self) -> Parcels:
        """Reads until the limits of the plan, the end, or until there is nothing now."""
        plan, state = self.plan, self.state
        left = plan.row_limit
        rows, ended, until_s = 0, state.ended, self._until_s()
        while not ended and (left is None or left > 0) and (until_s is None or self.clock.monotonic_s() < until_s):
            elements = self.reader.read(_READ_AT_ONCE if left is None else min(left, _READ_AT_ONCE))
            if elements is None:
                ended = True
            elif elements:
                self._process(iter(elements))
                rows += len(elements)
                left = None if left is None else left - len(elements)
                yield from self.host.parcels()
            elif plan.saves:
                break
            else:  # a batch reads to the end
                _PAUSE.wait(_PAUSE_S)
        latest = {node: each.latest_us for node, each in self.clocks.items()}
        read_s = self.clock.wall_s() if rows or not state.read_s else state.read_s
        self.state = PartitionState(self.reader.position, latest, ended, read_s)
        self.host.flush()
        yield from self.host.parcels(1)
        yield from self._marks()
        saved = packed(self.state)
        yield DONE, self.number % plan.slots, packed(Progress(self.number, saved, rows, ended))
        yield DONE, self.number % plan.slots, packed(self.failures.counts(self.host.late_windows))
        self.host.late_windows, self.failures = 0, Failures()

    def close(self) -> None:
        """Closes reader and authors' objects."""
        self.reader.close()
        self.host.close()

    def _process(self, elements: Iterator[Any]) -> None:
        """Feeds the stage; after a failure it goes on with the next element."""
        while True:
            try:
                self._feed(elements)
            except Exception as error:  # of an author's function
                self.failures.add(error)
            else:
                return

    def _marks(self) -> Parcels:
        mark: tuple[int, bool] | None = None
        if self.clocks:
            silent_s = self.clock.wall_s() - self.state.read_s
            idle_s = silent_s if silent_s >= idle_after_s(self._times.values()) else 0.0
            mark = source_watermark([(min(each.bound_us for each in self.clocks.values()), idle_s)])
        time_us, idle = mark or (None, False)
        for target in self.plan.targets(self.host.stage):
            body = packed(Mark(target, time_us, idle, self.state.ended))
            for slot in range(self.plan.slots):
                yield self.plan.level_of[target], slot, body

    def _until_s(self) -> float | None:
        limit_s = self.plan.time_limit_s
        return None if limit_s is None else self.clock.monotonic_s() + limit_s

    def _clock(self, given: AssignEventTime, latest_us: int | None) -> EventClock:
        latest_us = START_OF_TIME_US if latest_us is None else latest_us
        return EventClock(given.lag_us, latest_us, given.max_ahead_us, self.clock.wall_s)


def read_partition(plan: SparkPlan, number: int, packed_state: bytes | None) -> Parcels:
    """Reads a partition from where the last batch left it."""
    key = plan.run, number
    kept_state, partition = _readers.pop(key, (b"", None))
    if partition is not None and kept_state != packed_state:
        partition.close()  # another worker has read it since then
        partition = None
    if partition is None:
        state = unpacked(packed_state) if packed_state else PartitionState()
        partition = _Partition(plan, number, state, SystemClock())
    try:
        yield from partition.read()
    except BaseException:
        partition.close()
        raise
    if plan.saves and not partition.state.ended:
        _readers[key] = packed(partition.state), partition
    else:
        partition.close()
