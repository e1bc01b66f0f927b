"""Groupings that authors write themselves."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from heron.api import custom_grouping
from heron.api.context import TopologyContext

__all__ = ["ICustomGrouping"]


class ICustomGrouping(custom_grouping.ICustomGrouping):
    """Chooses the receiving tasks of each tuple; as in heronpy, `prepare` may be left out."""

    def prepare(self, context: TopologyContext, component: str, stream: str, target_tasks: Sequence[int]) -> None:
        """Called with the consumer's task ids before the first tuple."""

    def choose_tasks(self, values: tuple[Any, ...]) -> list[int]:
        """The tasks that receive a tuple with these values."""
        raise NotImplementedError
