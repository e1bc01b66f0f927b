"""From received segments to batches of rows, and the alignment of markers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import repeat

from heron.instance.batch_codec import decode_columns
from heron.instance.serializers import Serializers
from heron.instance.tuple_pool import TupleSource, TupleSources
from heron.ipc.frame import SegmentHead
from heron.planner.physical_plan import PlanIndex, PlanUpdate

__all__ = ["BatchReader", "MarkerAligner", "ReceivedBatch"]


@dataclass(frozen=True, slots=True)
class ReceivedBatch:
    """A decoded segment: its source, the number of its rows, and one sequence of values per field."""

    source: TupleSource
    rows: int
    columns: list[Sequence[object]]

    def values(self) -> Iterator[tuple[object, ...]]:
        """The values of each row; an empty tuple for each row of a stream without fields."""
        return zip(*self.columns, strict=True) if self.columns else repeat((), self.rows)


class BatchReader:
    """Decodes segments of tuples under the present plan."""

    def __init__(self, index: PlanIndex, serializers: Serializers) -> None:
        self._sources = TupleSources(index)
        self._serializers = serializers

    def set_plan(self, index: PlanIndex) -> None:
        """Replaces the plan."""
        self._sources.set_plan(index)

    def read(self, data: bytes, head: SegmentHead) -> ReceivedBatch:
        """Decodes the segment of `data` that `head` describes.

        Raises:
            RemoteProtocolError: when the plan does not have its source, or the topology has no serializer for it.
            SerializationError: when its payload does not decode.
        """
        serializer = self._serializers.for_input(head.encoding, head.source_task)
        source = self._sources.of(head.source_task, head.stream)
        payload = memoryview(data)[head.payload_start : head.end]
        return ReceivedBatch(source, head.rows, decode_columns(payload, head.rows, serializer))


class MarkerAligner:
    """Counts END and PLAN markers by source task: the only place that aligns markers (design D16).

    Repeated markers, and markers of former upstream tasks, have no effect.
    """

    __slots__ = ("_ended", "_switched", "_upstream")

    def __init__(self, upstream: frozenset[int]) -> None:
        self._upstream = upstream
        self._ended: set[int] = set()
        self._switched: dict[int, int] = {}

    def set_upstream(self, upstream: frozenset[int]) -> None:
        """Replaces the upstream tasks by those of a new plan."""
        self._upstream = upstream

    def end(self, task_id: int) -> None:
        """Counts an END marker of this task."""
        self._ended.add(task_id)

    def switch(self, task_id: int, update: int) -> None:
        """Counts a PLAN marker of this task, with the number of an update."""
        self._switched[task_id] = max(update, self._switched.get(task_id, 0))

    def complete(self) -> bool:
        """Whether every upstream task has ended."""
        return self._upstream <= self._ended

    def switched(self, update: PlanUpdate) -> bool:
        """Whether every upstream task sends this task nothing more: its PLAN marker has come, or its END.

        Each upstream task sends one at the switch, added tasks too. Absent tasks send nothing.
        """
        silent = self._ended.union(update.absent)
        return all(self._switched.get(task, 0) >= update.number for task in self._upstream - silent)
