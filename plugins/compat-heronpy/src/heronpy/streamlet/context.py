"""What a source or transformer learns about its task, with the methods of heronpy."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from heron.api import HashMapState, State
from heron_streamlet import StageContext

__all__ = ["Context"]

_STREAM = "output"


class Context:
    """The task of an operator. `emit` collects what `TransformOperator.transform` gives."""

    def __init__(self, context: StageContext) -> None:
        self._context = context
        self._state = HashMapState()
        self._emitted: list[Any] = []

    def get_task_id(self) -> int:
        """Return the id of the task."""
        return self._context.task_id

    def get_config(self) -> Mapping[str, Any]:
        """Return the configuration of the topology."""
        return self._context.config

    def get_stream_name(self) -> str:
        """Return the name of the stream, as in heronpy always the same."""
        return _STREAM

    def get_num_partitions(self) -> int:
        """Return the number of tasks of the operator."""
        return self._context.partitions

    def get_partition_index(self) -> int:
        """Return the number of this task, from 0."""
        return self._context.partition

    def get_state(self) -> State:
        """Return a state in the memory of the task. It is not part of checkpoints; see `Streamlet.map_with_state`."""
        return self._state

    def emit(self, values: Any) -> None:  # noqa: ANN401  # an element
        """Give an element of the new stream."""
        self._emitted.append(values)

    def take(self) -> list[Any]:
        """Take what was emitted since the last call. Authors do not call it."""
        emitted, self._emitted = self._emitted, []
        return emitted
