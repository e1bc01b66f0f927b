"""The view that a running component has of itself and its topology, and the base class of task hooks."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, TypeVar

from heron.api.component import ThreadsafeCollector
from heron.api.definition import GroupingDefinition, TopologyDefinition
from heron.api.keyed_state import KeyedState
from heron.api.metrics import IMetric
from heron.api.stream_id import GlobalStreamId
from heron.api.task_hook import BoltAckInfo, BoltExecuteInfo, BoltFailInfo, EmitInfo, SpoutAckInfo, SpoutFailInfo

__all__ = ["ITaskHook", "TopologyContext"]

S = TypeVar("S", bound=KeyedState[Any])


class TopologyContext(ABC):
    """The argument of `initialize`. It is valid until the task ends; only the component's thread may use it."""

    @abstractmethod
    def get_task_id(self) -> int:
        """Return the id of this task. It is unique in the topology and never reused."""

    @abstractmethod
    def get_task_index(self) -> int:
        """Return the index of this task in its component: 0 to ``get_parallelism() - 1``.

        While an update moves the instance to another container, two tasks have its index. Only `get_task_id` is unique.
        """

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
    def get_config(self) -> Mapping[str, Any]:
        """Return the configuration of the component: the topology's, overridden by the component's own.

        `initialize` receives the same. After `heron update --runtime-config` it has the new values.
        """

    @abstractmethod
    def get_topology(self) -> TopologyDefinition:
        """Return the topology as data: its components with their streams, inputs and configuration.

        An update that changes configuration makes a new value; a later call returns it.
        """

    @abstractmethod
    def get_component_tasks(self, component_id: str) -> list[int]:
        """Return the task ids of a component, by task index.

        Raises:
            UsageError: when the topology has no such component.
        """

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
            UsageError: when the name is not a text or is taken, `metric` is not a metric, or the period
                is not above 0 s.
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

    @abstractmethod
    def keyed_state(
        self,
        name: str,
        kind: type[S],
        *,
        default: object = None,
        ttl_s: float | None = None,
        event_time: bool = False,
    ) -> S:
        """Return the handle of a keyed state, for example ``context.keyed_state("counts", CounterState)``.

        Call it in `initialize`, so that a saved state that does not fit is refused before data flows; a later call is
        allowed. A second call with the same arguments returns the same handle.

        Args:
            name: names the state in the component; it is saved under this name.
            kind: `ValueState`, `CounterState`, `ListState` or `MapState`, with or without its types.
            default: what `ValueState.get` returns for a missing key; None, a scalar or a tuple of scalars.
            ttl_s: the seconds from the last write of an entry until it expires; above 0. Expired entries are not
                returned and not saved. None: entries do not expire.
            event_time: whether `KeyedState.advance` gives the time, and not the wall clock. Needs `ttl_s`.

        Raises:
            UsageError: when the name is taken with other arguments, or an argument is wrong.
            CheckpointError: when the saved state of this name has another kind, or cannot be migrated.
        """

    @abstractmethod
    def owns(self, key: object) -> bool:
        """Whether this task owns the key's group, and so may keep state for the key.

        A spout can take its partitions as keys: it reads those that it owns, and keeps their positions in keyed state.
        Partitions and positions then move together when the parallelism changes.

        Raises:
            UsageError: when the key cannot be grouped by.
        """


class ITaskHook:
    """The base class of task hooks: override the methods of interest.

    `TopologyContext.add_task_hook` adds a hook to one task; ``topology.auto.task.hooks`` adds hooks to every task, by
    class name. A hook costs a call for each tuple, so use hooks for diagnosis and metrics for operation.
    """

    def prepare(self, conf: Mapping[str, Any], context: TopologyContext) -> None:
        """Prepare the hook. Called once, after the `initialize` of the component."""

    def clean_up(self) -> None:
        """Release resources. Called at an orderly stop, after the `close` of the component."""

    def emit(self, emit_info: EmitInfo) -> None:
        """Observe an emit of the task."""

    def spout_ack(self, spout_ack_info: SpoutAckInfo) -> None:
        """Observe that a tree of this spout is complete."""

    def spout_fail(self, spout_fail_info: SpoutFailInfo) -> None:
        """Observe that a tree of this spout failed."""

    def bolt_execute(self, bolt_execute_info: BoltExecuteInfo) -> None:
        """Observe that `process` returned."""

    def bolt_ack(self, bolt_ack_info: BoltAckInfo) -> None:
        """Observe an ack of the bolt."""

    def bolt_fail(self, bolt_fail_info: BoltFailInfo) -> None:
        """Observe a fail of the bolt."""
