"""The view that a running component has of itself and its topology. The engine implements it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

from heron.api.component import ThreadsafeCollector
from heron.api.component_spec import GlobalStreamId
from heron.api.definition import GroupingDefinition
from heron.api.metrics import IMetric
from heron.api.state import CounterState
from heron.api.task_hook import ITaskHook

__all__ = ["TopologyContext"]


class TopologyContext(ABC):
    """The argument of `initialize`. It is valid until the task ends; only the component's thread may use it."""

    @abstractmethod
    def get_task_id(self) -> int:
        """Return the id of this task. It is unique in the topology and never reused."""

    @abstractmethod
    def get_task_index(self) -> int:
        """Return the index of this task in its component: 0 to ``get_parallelism() - 1``."""

    @abstractmethod
    def get_parallelism(self) -> int:
        """Return the present number of tasks of this component."""

    @abstractmethod
    def get_component_id(self) -> str:
        """Return the name of this component."""

    @abstractmethod
    def get_topology_name(self) -> str:
        """Return the name of the topology."""

    @abstractmethod
    def get_cluster_config(self) -> Mapping[str, Any]:
        """Return the configuration of the topology, without the component's own."""

    @abstractmethod
    def get_component_tasks(self, component_id: str) -> list[int]:
        """Return the task ids of a component, by task index.

        Raises:
            UsageError: when the topology has no such component.
        """

    @abstractmethod
    def keyed_state(self, name: str, kind: type[CounterState]) -> CounterState:
        """Return the keyed state of this name."""

    @abstractmethod
    def owns(self, key: object) -> bool:
        """Return whether this task owns the key group of a key."""

    @abstractmethod
    def get_sources(self, component_id: str) -> Mapping[GlobalStreamId, GroupingDefinition]:
        """Return the input streams of a component, with the grouping of each.

        Raises:
            UsageError: when the topology has no such component.
        """

    def get_this_sources(self) -> Mapping[GlobalStreamId, GroupingDefinition]:
        """Return the input streams of this component, with the grouping of each."""
        return self.get_sources(self.get_component_id())

    @abstractmethod
    def register_metric(self, name: str, metric: IMetric, time_bucket_in_sec: float) -> None:
        """Read `metric` every `time_bucket_in_sec` seconds, and report it under `name`.

        Raises:
            UsageError: when the name is taken, or the period is not above 0 s.
        """

    @abstractmethod
    def add_task_hook(self, task_hook: ITaskHook) -> None:
        """Add an observer of the emits, acks and fails of this task. Allowed only in `initialize`.

        Raises:
            UsageError: after `initialize`, or when `task_hook` is not an `ITaskHook`.
        """

    @abstractmethod
    def threadsafe_collector(self) -> ThreadsafeCollector:
        """Return a collector for threads that the component starts itself.

        The collector that the component was constructed with belongs to the component's own thread.
        """
