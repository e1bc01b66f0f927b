"""Sends each element to the task that an author's function chooses."""

from __future__ import annotations

import base64
from collections.abc import Callable, Sequence
from typing import Any

import cloudpickle

from heron.api import Grouping, ICustomGrouping, TopologyContext
from heron_streamlet.plan.operators import chosen_partition

__all__ = ["PartitionGrouping", "partition_grouping"]


class PartitionGrouping(ICustomGrouping):
    """Calls ``function(element, number of tasks)``, which returns the position of a task."""

    def __init__(self, function: str, name: str) -> None:
        """`function` is pickled; `name` is that of its operator."""
        self._function: Callable[[Any, int], int] = cloudpickle.loads(base64.b64decode(function))
        self._name = name
        self._tasks: Sequence[int] = ()

    def prepare(self, context: TopologyContext, component: str, stream: str, target_tasks: Sequence[int]) -> None:
        """Take the tasks of the consumer."""
        self._tasks = target_tasks

    def choose_tasks(self, values: tuple[Any, ...]) -> list[int]:
        """Return the task for an element.

        Raises:
            OperatorError: when the function fails, or does not return the position of a task.
        """
        return [self._tasks[chosen_partition(self._function, values[0], len(self._tasks), self._name)]]


def partition_grouping(function: Callable[[Any, int], int], name: str) -> Grouping:
    """The grouping of a `repartition` with a function."""
    pickled = base64.b64encode(cloudpickle.dumps(function)).decode("ascii")
    return Grouping.custom(PartitionGrouping, {"function": pickled, "name": name})
