"""Groupings that authors write."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from heron.api import stream as engine
from heron.api.context import TopologyContext

__all__ = ["ICustomGrouping"]


class ICustomGrouping(engine.ICustomGrouping):
    """Chooses the receiving tasks of each tuple. As in heronpy, a class may omit `prepare`."""

    def prepare(self, context: TopologyContext, component: str, stream: str, target_tasks: Sequence[int]) -> None:
        """Receive the task ids of the consumer. Called before the first tuple."""

    def choose_tasks(self, values: tuple[Any, ...]) -> list[int]:
        """Return the tasks that receive a tuple with these values.

        Raises:
            NotImplementedError: when the class does not override this method.
        """
        raise NotImplementedError
