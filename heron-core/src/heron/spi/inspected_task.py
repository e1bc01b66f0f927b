"""What the gateway thread and observers may know of their task: set by the task thread."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

from heron.planner.physical_plan import PlanIndex

if TYPE_CHECKING:
    from pyarrow import RecordBatch

__all__ = ["FirstRows", "InspectedTask", "TupleSampler"]


FirstRows = Callable[[int], Sequence[Sequence[object]]]
"""Returns the values of the first rows of a received batch; its argument limits their number."""


class TupleSampler(Protocol):
    """Takes tuples of a task; the inspection makes it when a command asks for tuples."""

    def receive(self, key: tuple[str, str], task_id: int, first_rows: FirstRows, index: PlanIndex) -> None:
        """Takes rows of a received batch; `key` is the component and the stream of the task that sent it."""
        ...

    def emit(self, stream: str, fields: Sequence[str], rows: Sequence[object]) -> None:
        """Takes emitted rows. A row of a stream with one field is the value itself."""
        ...

    def emit_columns(self, stream: str, fields: Sequence[str], batch: RecordBatch) -> None:
        """Takes rows of a batch that was emitted as columns."""
        ...


class InspectedTask:
    """The component, None before it is made; the parts of its keyed states by name; the number of inputs and outputs.

    `sample` is set by an observer, and filled by the task thread.
    """

    __slots__ = ("component", "inputs", "outputs", "sample", "states")

    def __init__(self) -> None:
        self.component: object = None
        self.states: Callable[[], Mapping[str, Sequence[object]]] = dict
        self.inputs = self.outputs = 0
        self.sample: TupleSampler | None = None
