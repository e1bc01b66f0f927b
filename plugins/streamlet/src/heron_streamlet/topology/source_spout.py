"""The spout that runs a stage with a source: reads the partitions of its task, one after the other."""

from __future__ import annotations

import operator
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from itertools import islice
from typing import Any

from heron.api import CountMetric, IMetric, Spout, StatefulComponent, Stream, TopologyContext, ValueState
from heron.author_text import short_text
from heron.clock import Clock, SystemClock
from heron_streamlet.connectors.sources import GaugedReader, MeasuredReader, PlacedReader, Reader
from heron_streamlet.failures import OperatorError
from heron_streamlet.plan.operators import idle_after_s
from heron_streamlet.runtime.stage_code import StageCode
from heron_streamlet.topology.task_host import TaskHost
from heron_streamlet.windowing.event_time import EventClock, source_watermark

__all__ = ["PARTITIONS_KEY", "PROGRESS", "OpenPartition", "SourceSpout"]

PARTITIONS_KEY = "heron.streamlet.partitions"
"""The component's configuration: ``[key, name]`` of each partition. The task that owns the key reads the partition."""

PROGRESS_STREAM = "progress"
PROGRESS = Stream(fields=["elements"], name=PROGRESS_STREAM)
"""The stream of a stage in which a stream ends: how many elements each call processed. The engine calls a spout at once
that emits."""

_READ_S = 0.004  # what is read at once takes about this long: a checkpoint, acks and back pressure wait for it
_READ_AT_FIRST, _READ_AT_MOST = 16, 1024
_METRIC_S = 10.0
_LONG_S = 0.01  # the engine makes up to 16 calls that emit before it looks at its commands
_COMBINE_S = 0.05  # a call of `next_tuple` combines for this long; a checkpoint and acks wait for it
_WATERMARK_S = 0.05  # each watermark ends a batch
_WATERMARK_IDLE_S = 0.002  # the same when no data waits: batches are small then, and windows close soon after their end
_REPEAT_S = 1.0  # a task downstream that was restarted hears the watermark again


_BEGIN: tuple[object, int, dict[int, int]] = (None, 0, {})


class OpenPartition:
    """A partition that this task reads.

    What is saved is where the last `read` began, and how many of its elements were processed: a failed element does not
    make the others of its read appear twice. A `PlacedReader` says itself where the next element is.
    """

    def __init__(
        self, key: str, name: str, reader: Reader[Any], clocks: dict[int, EventClock], idle_after_s: float, clock: Clock
    ) -> None:
        self.key, self.name = key, name
        self.clocks = clocks
        self.ended = False
        self.processed = 0
        """How many elements were processed by this object."""
        self._clock = clock
        self.read_s = clock.monotonic_s()
        """When it last had an element."""
        self.reader = reader
        self._is_placed = isinstance(reader, PlacedReader)
        self._idle_after_s = idle_after_s
        self._position = reader.position
        self._elements: Sequence[Any] = ()
        self._rest = iter(self._elements)
        self._skipped = 0
        self._size = _READ_AT_FIRST

    def feed(self, feed: Callable[[Iterator[Any]], None]) -> bool:
        """Processes some elements; also those that were left when one failed. Returns whether there were some."""
        if not self._left():
            if not self._is_placed:
                self._position = self.reader.position
            elements = self.reader.read(self._size)
            if elements is None:
                self.ended = True
            self._elements = elements or ()
            self._rest = iter(self._elements)
            passed = len(list(islice(self._rest, self._skipped)))
            self._skipped -= passed
            if not self._left():
                return bool(passed)
        begin_s = self.read_s = self._clock.monotonic_s()
        before = self._left()
        try:
            feed(self._rest)
        finally:
            self.processed += before - self._left()
        took_s = self._clock.monotonic_s() - begin_s
        if took_s > _READ_S:
            self._size = max(1, self._size // 2)
        elif took_s < _READ_S / 4 and len(self._elements) == self._size:
            self._size = min(2 * self._size, _READ_AT_MOST)
        return True

    def skip(self, count: int) -> None:
        """Passes over the next elements, which were processed before a restore; the reader may have them later."""
        self._skipped = count

    def _left(self) -> int:
        return operator.length_hint(self._rest)

    def backlog(self) -> float | None:
        """How many elements wait: those of the last `read`, and what the reader says."""
        behind = self.reader.backlog() if isinstance(self.reader, MeasuredReader) else None
        return None if behind is None else behind + self._left()

    def saved(self) -> tuple[object, int, dict[int, int]]:
        """What a restore continues from."""
        latest = {node: clock.latest_us for node, clock in self.clocks.items()}
        if not self._left() or self.reader.position is None:  # without positions nothing is read again
            return self.reader.position, self._skipped, latest
        done = len(self._elements) - self._left()
        if isinstance(self.reader, PlacedReader):
            return self.reader.position_of(done), 0, latest
        return self._position, done, latest

    def place(self) -> str:
        """Where the element at hand is: the partition, and the place in it."""
        number, reader = len(self._elements) - self._left(), self.reader
        if isinstance(reader, PlacedReader):
            return f"partition {self.name!r}, position {short_text(reader.position_of(max(0, number - 1)), 200)}"
        return f"partition {self.name!r}, element {number} behind position {short_text(self._position, 200)}"

    def idle_s(self, now_s: float) -> float:
        """For how long it has been idle; 0 if it is not."""
        silent_s = now_s - self.read_s
        return silent_s if silent_s >= self._idle_after_s else 0.0

    def watermark_us(self) -> int:
        """The smallest watermark of its clocks."""
        return min(clock.bound_us for clock in self.clocks.values())

    def close(self) -> None:
        """Closes the reader."""
        self.reader.close()


class SourceSpout(Spout, StatefulComponent):
    """Runs a stage that begins with a source. Positions and event times of its partitions are its state."""

    clock: Clock = SystemClock()
    clocks: Mapping[int, EventClock]

    def initialize(self, config: Mapping[str, Any], context: TopologyContext) -> None:
        """Open the partitions of this task where the checkpoint left them."""
        self.host = TaskHost(self, config, context)
        self.code = StageCode(self.host.stage, self.host)
        self.feed = self.code.feed()
        self.saved: ValueState[str, Any] = context.keyed_state("positions", ValueState)
        self.next_id = 0
        self.in_flight: dict[int, tuple[tuple[Any, ...], str]] = {}
        self.partitions: list[OpenPartition] = []
        source = self.host.source()
        self.bounded = source.bounded
        clocks = self.host.event_times()
        own = self.host.context_of(self.host.stage.head.name, config, context)
        tasks, index = self.host.stage.head.partitions, context.get_task_index()
        for number, (key, name) in enumerate(config[PARTITIONS_KEY]):
            # Without checkpoints a position cannot move: tasks that an update adds read nothing.
            if context.owns(key) if self.host.saves else number % tasks == index:
                position, done, latest = (self.saved.get(key) if self.host.saves else None) or _BEGIN
                times = {node: each.clock(latest.get(node), self.clock.wall_s) for node, each in clocks.items()}
                reader = source.open(name, position, own)
                partition = OpenPartition(key, name, reader, times, idle_after_s(clocks.values()), self.clock)
                partition.skip(done)
                self.partitions.append(partition)
        self.has_time = bool(clocks)
        self.elements, self.told = CountMetric(), 0
        self.rests = False
        if self.host.stage.ends:
            context.register_metric("elements", self.elements, _METRIC_S)
        if gauged := [each.reader for each in self.partitions if isinstance(each.reader, GaugedReader)]:
            context.register_metric("source", _Gauges(gauged), _METRIC_S)
        self.turn = 0
        self.sent_s = self.marked_s = -_REPEAT_S
        self.marked: tuple[int, bool] | None = None

    def next_tuple(self) -> None:
        """Read the partitions in turn: some elements, or as long as it pays to combine them."""
        if self.rests:  # a call that emits nothing lets the engine look at its commands
            self.rests = False
            return
        reading = [each for each in self.partitions if not each.ended]
        if not reading and (self.partitions or self.bounded):  # else an update may bring partitions
            self.host.commit_all()  # there are sinks where nothing is replayed; this call is the last, unless it raises
            self.end()
            return
        begin_s = self.clock.monotonic_s()
        until_s = begin_s + _COMBINE_S if self.host.combines else 0.0
        busy = True
        try:
            while (busy := self._read(reading)) and self.clock.monotonic_s() < until_s:
                reading = [each for each in reading if not each.ended] or reading
        finally:
            # Each call that reads also emits: otherwise the engine would call it less often.
            for error in self.host.flush():
                self.host.failed(error)
            if self.host.stage.ends:
                self._tell()
                self.rests = self.clock.monotonic_s() - begin_s > _LONG_S
            if self.has_time:
                self._mark(self.clock.monotonic_s(), _WATERMARK_S if busy else _WATERMARK_IDLE_S)

    def _tell(self) -> None:
        """Emits how many elements were processed, if there were some."""
        processed = sum(each.processed for each in self.partitions)
        if processed > self.told:
            self.elements.incr(processed - self.told)
            self.emit((processed - self.told,), stream=PROGRESS_STREAM)
            self.told = processed

    def _read(self, reading: list[OpenPartition]) -> bool:
        """Processes some elements of the next partition that has any; returns whether there were some."""
        for _ in reading:
            self.turn += 1
            partition = reading[self.turn % len(reading)]
            self.clocks, self.host.origin = partition.clocks, partition.place
            try:
                if partition.feed(self.feed):
                    return True
            except OperatorError as error:  # not raised: the engine would wait before the next call
                self.host.failed(error)
                return True
            finally:
                self.host.origin = None  # what is combined is of many elements
        return False

    def send(self, values: tuple[Any, ...], stream: str) -> None:
        """Emit a row, and keep it until it is acked."""
        self.next_id += 1
        self.in_flight[self.next_id] = values, stream
        self.emit(values, tup_id=self.next_id, stream=stream)

    def ack(self, tup_id: Any) -> None:  # noqa: ANN401  # as in the base class
        """Forget a row."""
        self.in_flight.pop(tup_id, None)

    def fail(self, tup_id: Any) -> None:  # noqa: ANN401  # as in the base class
        """Emit a row again."""
        if (kept := self.in_flight.get(tup_id)) is not None:
            self.emit(kept[0], tup_id=tup_id, stream=kept[1])

    def backlog(self) -> float | None:
        """What waits in the partitions of this task; None if one of them does not know."""
        waiting = 0.0
        for partition in self.partitions:
            if not partition.ended:
                behind = partition.backlog()
                if behind is None:
                    return None
                waiting += behind
        return waiting if self.partitions else None

    def pre_save(self, checkpoint_id: str) -> None:  # all checkpoints are alike
        """Save the positions."""
        for partition in self.partitions:
            self.saved.put(partition.key, partition.saved())

    def close(self) -> None:
        """Close partitions and the authors' objects."""
        with ExitStack() as closing:  # one that fails keeps no other open
            if hasattr(self, "host"):
                closing.callback(self.host.close)
            for partition in getattr(self, "partitions", ()):
                closing.callback(partition.close)

    def _mark(self, now_s: float, period_s: float) -> None:
        """Emits the watermark of the task, unless it did so a moment ago."""
        if now_s - self.sent_s < period_s:
            return
        self.sent_s = now_s
        mark = source_watermark(
            [(each.watermark_us(), each.idle_s(now_s)) for each in self.partitions if not each.ended]
        )
        if mark is None or (mark == self.marked and now_s - self.marked_s < _REPEAT_S):
            return
        self.marked, self.marked_s = mark, now_s
        self.emit_watermark(mark[0] / 1_000_000, idle=mark[1])


class _Gauges(IMetric):
    """The numbers of the readers of a task."""

    def __init__(self, readers: Sequence[GaugedReader[Any]]) -> None:
        self._readers = readers

    def get_value_and_reset(self) -> dict[str, float]:
        """`IMetric.get_value_and_reset`."""
        sums = Counter[str]()
        for each in self._readers:
            sums.update(each.gauges())
        return dict(sums)
