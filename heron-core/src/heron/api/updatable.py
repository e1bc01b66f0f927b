"""Components that follow a change of the parallelism, or of the configuration, of a running topology."""

from __future__ import annotations

from abc import ABC, abstractmethod

from heron.api.context import TopologyContext

__all__ = ["IUpdatable"]


class IUpdatable(ABC):
    """A second base class for a spout or bolt whose work depends on the number of tasks, or on values that may change.

    Example: a spout that reads every n-th partition needs the new n. Source: Heron's ``IUpdatable``.
    """

    @abstractmethod
    def update(self, context: TopologyContext) -> None:
        """The tasks of this component, or of one that it sends to, or its configuration, have changed.

        The engine calls it on the task's thread, between two calls of `next_tuple` or `process`, before custom
        groupings are prepared again. Tuples that it emits take the old routes. It is not called in a removed task, nor
        in a new task: the `initialize` of a new task sees the new tasks, and `next_tuple` is called when the others are
        updated. The tasks learn of the change one after the other, within milliseconds, so two tasks may do the same
        work for a moment. An exception is shown and counted, and the task continues with the new plan.

        Args:
            context: the context of the task, with the new tasks and the new `get_config`.
        """
