"""Sends each element to the task that an author's function chooses."""

from __future__ import annotations

import base64
from collections.abc import Callable, Sequence
from typing import Any

import cloudpickle

from heron.api import Grouping, ICustomGrouping, TopologyContext
from heron_streamlet.failures import Step
from heron_streamlet.plan.operators import chosen_partition

__all__ = ["PartitionGrouping", "partition_grouping"]


class PartitionGrouping(ICustomGrouping):
    """Calls ``function(element, number of tasks)``, which returns the position of a task."""

    def __init__(self, packed: str) -> None:
        """`packed` has the function and its operator."""
        found: tuple[Callable[[Any, int], int], Step] = cloudpickle.loads(base64.b64decode(packed))
        self._function, self._step = found
        self._tasks: Sequence[int] = ()

    def prepare(self, context: TopologyContext, component: str, stream: str, target_tasks: Sequence[int]) -> None:
        """Take the tasks of the consumer."""
        self._tasks = target_tasks

    def choose_tasks(self, values: tuple[Any, ...]) -> list[int]:
        """Return the task for an element.

        Raises:
            OperatorError: when the function fails, or does not return the position of a task.
        """
        return [self._tasks[chosen_partition(self._function, values[0], len(self._tasks), self._step)]]


def partition_grouping(function: Callable[[Any, int], int], step: Step) -> Grouping:
    """The grouping of a `repartition` with a function."""
    pickled = base64.b64encode(cloudpickle.dumps((function, step))).decode("ascii")
    return Grouping.custom(PartitionGrouping, {"packed": pickled})
