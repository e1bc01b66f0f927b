"""What the gateway thread and observers may know of their task: set by the task thread."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # loaded when a command asks
    from heron.instance.tuple_sample import TupleSample

__all__ = ["InspectedTask"]


class InspectedTask:
    """The component, None before it is made; the parts of its keyed states by name; the number of inputs and outputs.

    `sample` is set by an observer, and filled by the task thread.
    """

    __slots__ = ("component", "inputs", "outputs", "sample", "states")

    def __init__(self) -> None:
        self.component: object = None
        self.states: Callable[[], Mapping[str, Sequence[object]]] = dict
        self.inputs = self.outputs = 0
        self.sample: TupleSample | None = None
