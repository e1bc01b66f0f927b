"""What a running component may ask about itself and its topology; the engine implements it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

from heron.api.collector import ThreadsafeCollector
from heron.api.component_spec import GlobalStreamId
from heron.api.definition import GroupingDefinition
from heron.api.metrics import IMetric
from heron.api.task_hook import ITaskHook

__all__ = ["TopologyContext"]


class TopologyContext(ABC):
    """Given to `initialize`; valid as long as the component runs, and to be used from the component's thread."""

    @abstractmethod
    def get_task_id(self) -> int:
        """This task's id, unique in the topology and never reused."""

    @abstractmethod
    def get_task_index(self) -> int:
        """This task's place among the tasks of its component: 0 to ``get_parallelism() - 1``."""

    @abstractmethod
    def get_parallelism(self) -> int:
        """How many tasks this component has now."""

    @abstractmethod
    def get_component_id(self) -> str:
        """The name of this component."""

    @abstractmethod
    def get_topology_name(self) -> str:
        """The name of the topology."""

    @abstractmethod
    def get_cluster_config(self) -> Mapping[str, Any]:
        """The topology's configuration, without the component's own."""

    @abstractmethod
    def get_component_tasks(self, component_id: str) -> list[int]:
        """The task ids of a component, by task index.

        Raises:
            UsageError: when the topology has no such component.
        """

    @abstractmethod
    def get_sources(self, component_id: str) -> Mapping[GlobalStreamId, GroupingDefinition]:
        """The streams that a component subscribes to, with the grouping of each.

        Raises:
            UsageError: when the topology has no such component.
        """

    def get_this_sources(self) -> Mapping[GlobalStreamId, GroupingDefinition]:
        """The streams that this component subscribes to, with the grouping of each."""
        return self.get_sources(self.get_component_id())

    @abstractmethod
    def register_metric(self, name: str, metric: IMetric, time_bucket_in_sec: float) -> None:
        """Has `metric` read every so many seconds and reported under `name`.

        Raises:
            UsageError: when the name is taken, or the period is not positive.
        """

    @abstractmethod
    def add_task_hook(self, hook: ITaskHook) -> None:
        """Adds an observer of this task's emits, acks and fails; allowed in `initialize` only.

        Raises:
            UsageError: when the task is initialised already, or `hook` is no `ITaskHook`.
        """

    @abstractmethod
    def threadsafe_collector(self) -> ThreadsafeCollector:
        """A collector for threads that the component starts itself; its own collector belongs to its own
        thread.
        """
