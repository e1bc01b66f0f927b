"""The spout that runs a stage with a source: reads the partitions of its task, one after the other."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from heron.api import Spout, StatefulComponent, TopologyContext, ValueState
from heron.clock import Clock, SystemClock
from heron_streamlet.event_time import START_OF_TIME_US, EventClock
from heron_streamlet.operators import AssignEventTime
from heron_streamlet.sources import Reader
from heron_streamlet.stage_code import StageCode
from heron_streamlet.task_host import TaskHost

__all__ = ["PARTITIONS_KEY", "SourceSpout"]

PARTITIONS_KEY = "heron.streamlet.partitions"
"""The component's configuration: ``[key, name]`` of each partition. The task that owns the key reads the partition."""

_READ_AT_MOST = 100  # elements per call of `next_tuple`: a checkpoint comes between two calls
_WATERMARK_S = 0.05
_REPEAT_S = 1.0  # a task downstream that was restarted hears the watermark again


_BEGIN: tuple[object, int, dict[int, int]] = (None, 0, {})


class _Partition:
    """A partition that this task reads.

    What is saved is where the last `read` began, and how many of its elements were processed: a failed element does not
    make the others of its read appear twice.
    """

    def __init__(
        self, key: str, reader: Reader[Any], clocks: dict[int, EventClock], idle_after_s: float, clock: Clock
    ) -> None:
        self.key = key
        self.clocks = clocks
        self.times: dict[int, Callable[[Any], tuple[int, int]]] = {node: each.read for node, each in clocks.items()}
        self.ended = False
        self._clock = clock
        self.read_s = clock.monotonic_s()
        """When it last had an element."""
        self._reader = reader
        self._idle_after_s = idle_after_s
        self._position = reader.position
        self._done = 0
        self._rest: Iterator[Any] | None = None

    def elements(self) -> Iterator[Any]:
        """The next elements; also what was left when an element failed."""
        if self._rest is None:
            self._position, self._done = self._reader.position, 0
            elements = self._reader.read(_READ_AT_MOST)
            if elements is None:
                self.ended = True
            if not elements:
                return
            self.read_s = self._clock.monotonic_s()
            self._rest = iter(elements)
        for element in self._rest:
            self._done += 1
            yield element
        self._rest = None
        self._position, self._done = self._reader.position, 0

    def skip(self, count: int) -> None:
        """Passes over elements that were processed before a restore."""
        if count:
            elements = self._reader.read(_READ_AT_MOST) or ()
            self._rest, self._done = iter(elements[count:]), count

    def saved(self) -> tuple[object, int, dict[int, int]]:
        """What a restore continues from."""
        return self._position, self._done, {node: clock.latest_us for node, clock in self.clocks.items()}

    def idle_s(self, now_s: float) -> float:
        """For how long it has been idle; 0 if it is not."""
        silent_s = now_s - self.read_s
        return silent_s if silent_s >= self._idle_after_s else 0.0

    def watermark_us(self) -> int:
        """The smallest watermark of its clocks."""
        return min(clock.watermark_us() for clock in self.clocks.values())

    def close(self) -> None:
        """Closes the reader."""
        self._reader.close()


class SourceSpout(Spout, StatefulComponent):
    """Runs a stage that begins with a source. Positions and event times of its partitions are its state."""

    clock: Clock = SystemClock()
    times: Mapping[int, Callable[[Any], tuple[int, int]]]

    def initialize(self, config: Mapping[str, Any], context: TopologyContext) -> None:
        """Open the partitions of this task where the checkpoint left them."""
        self.host = TaskHost(self, config, context)
        self.code = StageCode(self.host.stage, self.host)
        self.follow = self.code.follow()
        self.saved: ValueState[str, Any] = context.keyed_state("positions", ValueState)
        self.next_id = 0
        self.in_flight: dict[int, tuple[tuple[Any, ...], str]] = {}
        self.partitions: list[_Partition] = []
        source = self.host.source()
        clocks = self.host.event_times()
        own = self.host.context_of(self.host.stage.head.name, config, context)
        for key, name in config[PARTITIONS_KEY]:
            if context.owns(key):
                position, done, latest = self.saved.get(key) or _BEGIN
                times = {node: self._event_clock(each, latest.get(node)) for node, each in clocks.items()}
                reader = source.open(name, position, own)
                partition = _Partition(key, reader, times, _idle_after_s(clocks.values()), self.clock)
                partition.skip(done)
                self.partitions.append(partition)
        self.has_time = bool(clocks)
        self.turn = 0
        self.sent_s = self.marked_s = -_REPEAT_S
        self.marked: tuple[int, bool] | None = None

    def next_tuple(self) -> None:
        """Read one partition."""
        reading = [each for each in self.partitions if not each.ended]
        if not reading:
            self.host.flush()
            self.end()
            return
        self.turn += 1
        partition = reading[self.turn % len(reading)]
        self.times = partition.times
        follow, start = self.follow, START_OF_TIME_US
        try:
            for element in partition.elements():
                follow(element, start, start)
        finally:
            if self.has_time:
                self._mark(self.clock.monotonic_s())

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

    def pre_save(self, checkpoint_id: str) -> None:  # all checkpoints are alike
        """Send what is combined, and save the positions."""
        self.host.flush()
        for partition in self.partitions:
            self.saved.put(partition.key, partition.saved())

    def close(self) -> None:
        """Close partitions and the authors' objects."""
        for partition in getattr(self, "partitions", ()):
            partition.close()
        if hasattr(self, "host"):
            self.host.close()

    def _event_clock(self, operator: AssignEventTime, latest_us: int | None) -> EventClock:
        latest_us = START_OF_TIME_US if latest_us is None else latest_us
        return EventClock(operator.function, operator.lag_us, latest_us, operator.max_ahead_us, self.clock.wall_s)

    def _mark(self, now_s: float) -> None:
        """Emits the watermark of the task, unless it did so a moment ago."""
        if now_s - self.sent_s < _WATERMARK_S:
            return
        self.sent_s = now_s
        mark = _watermark([each for each in self.partitions if not each.ended], now_s)
        if mark is None or (mark == self.marked and now_s - self.marked_s < _REPEAT_S):
            return
        self.host.flush()
        self.marked, self.marked_s = mark, now_s
        self.emit_watermark(mark[0] / 1_000_000, idle=mark[1])


def _watermark(partitions: list[_Partition], now_s: float) -> tuple[int, bool] | None:
    """The watermark of a task, and whether it is idle; None while a partition that has to be waited for has no element.

    Idle partitions do not count while others have elements. If all are idle, event time goes on with the clock.
    """
    active = [each.watermark_us() for each in partitions if not each.idle_s(now_s)]
    if active:
        return (min(active), False) if min(active) > START_OF_TIME_US else None
    times = [each.watermark_us() for each in partitions if each.watermark_us() > START_OF_TIME_US]
    if not times:
        return (START_OF_TIME_US, True)
    silent_s = min(each.idle_s(now_s) for each in partitions)
    return max(times) + round(silent_s * 1_000_000), True


def _idle_after_s(operators: Iterable[AssignEventTime]) -> float:
    """The longest time of the operators; infinite if one of them waits for ever."""
    times = [float("inf") if each.idle_after_us is None else each.idle_after_us / 1_000_000 for each in operators]
    return max(times, default=float("inf"))
