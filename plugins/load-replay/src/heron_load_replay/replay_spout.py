"""The spout that stands in for each spout of a replayed topology."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, cast

from heron.api.context import TopologyContext
from heron.api.spout import Spout
from heron.clock import monotonic_s
from heron.spi.typed_values import convert_value
from heron_load_replay.arrival_times import task_partitions
from heron_load_replay.latency_histogram import LatencyHistogram
from heron_load_replay.load_file import read_rows
from heron_load_replay.plain_rows import LoadFileError, read_plain
from heron_load_replay.replay_order import ORDER_KEY, ReplayOrder
from heron_load_replay.replay_result import TaskResult, write_result

__all__ = ["ReplaySpout"]

_BURST = 64  # tuples that are due and emitted in one call: acks are taken between calls


class ReplaySpout(Spout):
    """Emits each tuple when it is due. The id of a tuple is its due time, so an ack gives the latency."""

    def initialize(self, config: Mapping[str, Any], context: TopologyContext) -> None:
        """Open the file. A process that is started again ends at once: it cannot know what has been emitted."""
        order = convert_value(config[ORDER_KEY], ReplayOrder)
        self._component, self._index = context.get_component_id(), context.get_task_index()
        self._folder = Path(order.results)
        partitions = task_partitions(len(order.partitions), self._index, context.get_parallelism())
        self._arrivals = order.arrivals(partitions)
        own = sum(order.partitions[each] for each in partitions)
        self._rate = self._arrivals.mean_rate(own, order.seconds)
        self._due = self._due_tuples(Path(order.file), partitions)
        self._restarted = not self._is_first()
        self._began_s = 0.0
        self._last_s = 0.0
        self._next: tuple[float, str, tuple[object, ...]] | None = None
        self._emitted = self._acked = self._failed = 0
        self._ended = False
        self._latency, self._lateness = LatencyHistogram(), LatencyHistogram()

    def next_tuple(self) -> None:
        """Emit what is due; in a closed system the engine calls when there is room for one more."""
        now_s = monotonic_s()
        if not self._emitted and self._next is None:
            self._began_s = self._last_s = now_s
            self._take()
        for _ in range(1 if self._arrivals.is_closed else _BURST):
            if self._next is None:
                self._end()
                return
            due_s, stream, values = self._next
            due_s = now_s if self._arrivals.is_closed else self._began_s + due_s
            if due_s > now_s:
                return
            self._lateness.add(now_s - due_s)
            self._emitted += 1
            self.emit(values, due_s, stream)
            self._take()

    def ack(self, tup_id: object) -> None:
        """Count the latency of a tree from its due time."""
        self._last_s = monotonic_s()
        self._acked += 1
        self._latency.add(self._last_s - cast("float", tup_id))
        self._write_if_done()

    def fail(self, tup_id: object) -> None:
        """Count it; a replay emits a tuple once."""
        self._failed += 1
        self._write_if_done()

    def backlog(self) -> float | None:
        """Return about how many tuples are due and not emitted: the health manager sizes a topology by it."""
        if self._next is None or self._arrivals.is_closed:
            return None
        return max(0.0, monotonic_s() - self._began_s - self._next[0]) * self._rate

    def close(self) -> None:
        """Write what was measured so far."""
        self._write()

    def _is_first(self) -> bool:
        """Whether no process has begun to replay this task."""
        try:
            (self._folder / f"{self._component}-{self._index}.begun").touch(exist_ok=False)
        except FileExistsError:
            return False
        return True

    def _take(self) -> None:
        self._next = None if self._restarted else next(self._due, None)

    def _due_tuples(self, file: Path, partitions: range) -> Iterator[tuple[float, str, tuple[object, ...]]]:
        number = 0
        for row in read_rows(file, self._component, partitions):
            values = read_plain(row.values)
            if not isinstance(values, tuple):
                msg = f"{file}: values of a tuple are a {type(values).__name__}"
                raise LoadFileError(msg)
            for _ in range(row.tuples):
                yield self._arrivals.due_s(number, row.due_us), row.stream, values
                number += 1

    def _end(self) -> None:
        self._ended = True
        self.end()
        self._write_if_done()

    def _write_if_done(self) -> None:
        if self._ended and self._acked + self._failed == self._emitted:
            self._write()

    def _write(self) -> None:
        result = TaskResult(
            self._component,
            self._index,
            self._emitted,
            self._acked,
            self._failed,
            self._last_s - self._began_s,
            dict(self._latency.buckets),
            self._latency.most_us,
            dict(self._lateness.buckets),
            self._lateness.most_us,
            self._restarted,
        )
        write_result(self._folder, result)
