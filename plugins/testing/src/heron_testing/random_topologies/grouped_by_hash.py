"""The custom grouping of random topologies."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from heron.api import ICustomGrouping, TopologyContext
from heron_testing.random_topologies.values import hash_of

__all__ = ["HashGrouping"]


class HashGrouping(ICustomGrouping):
    """Chooses no task, one task or two tasks, by the identity of the tuple."""

    def prepare(self, context: TopologyContext, component: str, stream: str, target_tasks: Sequence[int]) -> None:
        """Take the tasks."""
        self.tasks = list(target_tasks)

    def choose_tasks(self, values: tuple[Any, ...]) -> list[int]:
        """Choose by the first value."""
        number = hash_of(values[0])
        chosen = [self.tasks[(number // 7 + step) % len(self.tasks)] for step in range(number % 3)]
        return list(dict.fromkeys(chosen))
