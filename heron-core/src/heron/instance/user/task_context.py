"""What a component is given besides its collector: the context of its task."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from heron.api.component import ThreadsafeCollector
from heron.api.config import merged_config
from heron.api.context import ITaskHook, S, TopologyContext
from heron.api.definition import ComponentDefinition, GroupingDefinition, TopologyDefinition
from heron.api.metrics import IMetric
from heron.api.names import is_a
from heron.api.stream_id import GlobalStreamId
from heron.author_text import short_text
from heron.clock import SystemClock
from heron.errors import UsageError, known, nearest
from heron.instance.metrics.task_metrics import TaskMetrics
from heron.instance.state.keyed_state import KeyedStateStore
from heron.planner.physical_plan import PlanIndex

__all__ = ["TaskContext"]


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
        return dict(self.get_topology().config)

    def get_config(self) -> Mapping[str, Any]:
        """`TopologyContext`."""
        topology = self.get_topology()
        return merged_config(topology.config, topology.component(self._task.component).config)

    def get_topology(self) -> TopologyDefinition:
        """`TopologyContext`."""
        return self.index.plan.topology_of(self._task.task_id)

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
            return topology.component(component_id if is_a(component_id, str) else "")
        except KeyError:
            names = [component.name for component in topology.components]
            msg = f"unknown component {short_text(component_id)}{nearest(component_id, names)}; known: {known(names)}"
            raise UsageError(msg) from None
