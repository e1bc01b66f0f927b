"""Groupings that authors write themselves."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # groupings stand below specs, and specs below the context
    from heron.api.context import TopologyContext

__all__ = ["ICustomGrouping"]


class ICustomGrouping(ABC):
    """Chooses the receiving tasks of each tuple, in the emitting task."""

    @abstractmethod
    def prepare(self, context: TopologyContext, component: str, stream: str, target_tasks: Sequence[int]) -> None:
        """Called after the emitting component's `initialize`, and again when the consumer's tasks change.

        Args:
            context: the emitting task's.
            component: the emitting component.
            stream: the emitted stream.
            target_tasks: the consumer's task ids, by task index.
        """

    @abstractmethod
    def choose_tasks(self, values: tuple[Any, ...]) -> list[int]:
        """The tasks that receive a tuple with these values: none, one or several of `target_tasks`."""
