"""Where a bolt's tuples come from: one per source task and stream, with its pool."""

from __future__ import annotations

from heron.api.tuple import Tuple
from heron.errors import RemoteProtocolError
from heron.instance.tuple_pool import TuplePool
from heron.planner.physical_plan import PlanIndex

__all__ = ["TupleSource", "TupleSources"]


class TupleSource:
    """One stream of one task, as its tuples name it."""

    __slots__ = ("key", "pool")

    def __init__(self, component: str, stream: str, task_id: int) -> None:
        self.key = (component, stream)
        self.pool = TuplePool(Tuple.source(component, stream, task_id))


class TupleSources:
    """The sources of a task, made when the first segment of each comes."""

    def __init__(self, index: PlanIndex) -> None:
        self._index = index
        self._sources: dict[tuple[int, int], TupleSource] = {}

    def set_plan(self, index: PlanIndex) -> None:
        """Takes a new plan; task ids are never reused, so what is known stays true."""
        self._index = index

    def of(self, task_id: int, stream: int) -> TupleSource:
        """The source for a segment's source task and stream number.

        Raises:
            RemoteProtocolError: when the plan has no such task or stream.
        """
        source = self._sources.get((task_id, stream))
        if source is None:
            source = self._sources[task_id, stream] = self._make(task_id, stream)
        return source

    def _make(self, task_id: int, stream: int) -> TupleSource:
        task = self._index.tasks.get(task_id)
        outputs = self._index.plan.topology.component(task.component).outputs if task else ()
        if task is None or stream >= len(outputs):
            msg = (
                f"segment of task {task_id}, stream number {stream}: plan {self._index.plan.version} has no such stream"
            )
            raise RemoteProtocolError(msg)
        return TupleSource(task.component, outputs[stream].name, task_id)
