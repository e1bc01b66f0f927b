"""What a component is given besides its collector: the context, and the collector for threads that it starts itself."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from heron.api.component import ThreadsafeCollector
from heron.api.config import merged_config
from heron.api.context import ITaskHook, S, TopologyContext
from heron.api.definition import ComponentDefinition, GroupingDefinition
from heron.api.metrics import IMetric
from heron.api.stream_id import GlobalStreamId
from heron.api.tuple import Tuple
from heron.clock import SystemClock
from heron.errors import UsageError, known, nearest
from heron.instance.metrics.task_metrics import TaskMetrics
from heron.instance.queues.data_queue import Sleeper
from heron.instance.state.keyed_state import KeyedStateStore
from heron.planner.physical_plan import PlanIndex

__all__ = ["QueuedCollector", "QueuedTarget", "TaskContext"]

_MOST_CALLS = 10_000  # a thread that calls faster than the task thread executes the calls waits
_LOOK_EVERY_S = 0.25


class TaskContext(TopologyContext):
    """`TopologyContext` of one task, answered from its physical plan."""

    def __init__(
        self,
        index: PlanIndex,
        task_id: int,
        metrics: TaskMetrics,
        collector: ThreadsafeCollector,
        keyed: KeyedStateStore | None = None,
    ) -> None:
        self.index = index
        self._keyed = keyed or KeyedStateStore(index.tasks[task_id].component, task_id, 1, SystemClock())
        self.hooks: list[ITaskHook] = []
        self.initialised = False
        self._task = index.tasks[task_id]
        self._metrics = metrics
        self._collector = collector

    def get_task_id(self) -> int:
        """`TopologyContext`."""
        return self._task.task_id

    def get_task_index(self) -> int:
        """`TopologyContext`."""
        return self._task.component_index

    def get_parallelism(self) -> int:
        """`TopologyContext`."""
        return len(self.index.tasks_of(self._task.component))

    def get_component_id(self) -> str:
        """`TopologyContext`."""
        return self._task.component

    def get_topology_name(self) -> str:
        """`TopologyContext`."""
        return self.index.plan.topology.name

    def get_cluster_config(self) -> Mapping[str, Any]:
        """`TopologyContext`."""
        return dict(self.index.plan.topology.config)

    def get_config(self) -> Mapping[str, Any]:
        """`TopologyContext`."""
        topology = self.index.plan.topology
        return merged_config(topology.config, topology.component(self._task.component).config)

    def get_component_tasks(self, component_id: str) -> list[int]:
        """`TopologyContext`."""
        return list(self.index.tasks_of(self._component(component_id).name))

    def get_sources(self, component_id: str) -> Mapping[GlobalStreamId, GroupingDefinition]:
        """`TopologyContext`."""
        return {
            GlobalStreamId(subscription.component, subscription.stream): subscription.grouping
            for subscription in self._component(component_id).inputs
        }

    def register_metric(self, name: str, metric: IMetric, time_bucket_in_sec: float) -> None:
        """`TopologyContext`."""
        self._metrics.register(name, metric, time_bucket_in_sec)

    def add_task_hook(self, task_hook: object) -> None:
        """`TopologyContext`."""
        if self.initialised:
            msg = f"task {self._task.task_id}: add_task_hook after initialize; add hooks in initialize"
            raise UsageError(msg)
        if not isinstance(task_hook, ITaskHook):
            msg = f"task {self._task.task_id}: {type(task_hook).__name__} is not an ITaskHook; derive it from ITaskHook"
            raise UsageError(msg)
        self.hooks.append(task_hook)

    def keyed_state(
        self,
        name: str,
        kind: type[S],
        *,
        default: object = None,
        ttl_s: float | None = None,
        event_time: bool = False,
    ) -> S:
        """`TopologyContext`."""
        return self._keyed.state(name, kind, default=default, ttl_s=ttl_s, event_time=event_time)

    def owns(self, key: object) -> bool:
        """`TopologyContext`."""
        return self._keyed.owns(key)

    def threadsafe_collector(self) -> ThreadsafeCollector:
        """`TopologyContext`."""
        return self._collector

    def _component(self, component_id: str) -> ComponentDefinition:
        topology = self.index.plan.topology
        try:
            return topology.component(component_id)
        except KeyError:
            names = [component.name for component in topology.components]
            msg = f"unknown component {component_id!r}{nearest(component_id, names)}; known: {known(names)}"
            raise UsageError(msg) from None


class QueuedTarget:
    """The component's methods that queued calls go to; set when the component is constructed."""

    def __init__(self) -> None:
        self.emit: Callable[..., object] | None = None
        self.ack: Callable[[Tuple], None] | None = None
        self.fail: Callable[[Tuple], None] | None = None
        self.end: Callable[[], None] | None = None

    def clear(self) -> None:
        """Calls have no effect any more."""
        self.emit = self.ack = self.fail = self.end = None


class QueuedCollector:
    """`heron.api.ThreadsafeCollector`: queues calls of other threads for the task thread."""

    def __init__(self, target: QueuedTarget, sleeper: Sleeper) -> None:
        self._target = target
        self._sleeper = sleeper
        self._calls: deque[Callable[[], object]] = deque()
        self._room = threading.Event()
        self._task_thread = threading.get_ident()

    def emit(
        self,
        values: Sequence[object],
        stream: str = "default",
        *,
        tup_id: object = None,
        anchors: Iterable[Tuple] | None = None,
        direct_task: int | None = None,
    ) -> None:
        """Queues an emit."""
        row = tuple(values)
        extra = {"anchors": tuple(anchors)} if anchors is not None else {"tup_id": tup_id} if tup_id is not None else {}
        emit = self._target.emit
        if emit is not None:
            self._queue(partial(emit, row, stream=stream, direct_task=direct_task, **extra))

    def ack(self, tup: Tuple) -> None:
        """Queues an ack."""
        ack = self._target.ack
        if ack is not None:
            self._queue(partial(ack, tup))

    def fail(self, tup: Tuple) -> None:
        """Queues a fail."""
        fail = self._target.fail
        if fail is not None:
            self._queue(partial(fail, tup))

    def end(self) -> None:
        """Queues the end of this spout task."""
        end = self._target.end
        if end is not None:
            self._queue(end)

    def drain(self, failed: Callable[[Exception], None]) -> None:
        """Task thread: executes the queued calls; passes each exception to `failed`."""
        while self._calls:
            try:
                self._calls.popleft()()
            except Exception as error:
                failed(error)
            if len(self._calls) < _MOST_CALLS and not self._room.is_set():
                self._room.set()

    def __len__(self) -> int:
        """The number of queued calls."""
        return len(self._calls)

    def _queue(self, call: Callable[[], object]) -> None:
        while len(self._calls) >= _MOST_CALLS and threading.get_ident() != self._task_thread:
            self._room.clear()
            if len(self._calls) >= _MOST_CALLS:  # read after the change, so that no waiter is missed
                self._room.wait(_LOOK_EVERY_S)
        self._calls.append(call)
        self._sleeper.nudge()
