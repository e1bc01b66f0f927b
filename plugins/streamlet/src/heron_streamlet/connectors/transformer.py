"""Objects of authors that run in a task: transformers, and what they and sources and sinks learn about their task."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

__all__ = ["StageContext", "Transformer"]

T_contra = TypeVar("T_contra", contravariant=True)
U_co = TypeVar("U_co", covariant=True)


@dataclass(frozen=True, slots=True)
class StageContext:
    """The task that runs an operator.

    Attributes:
        name: the name of the operator.
        partition: the number of the task, from 0 to ``partitions - 1``.
        partitions: the number of tasks.
        config: the configuration of the topology.
        task_id: the id of the task in the topology; 0 where the engine has none.
    """

    name: str
    partition: int = 0
    partitions: int = 1
    config: Mapping[str, Any] = field(default_factory=dict)
    task_id: int = 0


class Transformer(ABC, Generic[T_contra, U_co]):
    """Transforms elements with resources of its task. Each task has a copy of the object."""

    def setup(self, context: StageContext) -> None:  # optional
        """Open what the task needs. Called once, before `transform`."""

    @abstractmethod
    def transform(self, element: T_contra) -> Iterable[U_co]:
        """Return the elements that this element becomes."""

    def close(self) -> None:  # optional
        """Release what `setup` opened. Not called when the process is killed."""
