"""What the code of a stage calls of its engine: rows leave, windows are assigned, authors' objects are set up."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

from heron_streamlet.connectors.sinks import TransactionalSink
from heron_streamlet.connectors.sources import Source
from heron_streamlet.connectors.transformer import StageContext
from heron_streamlet.failures import OperatorError
from heron_streamlet.plan.graph import Node
from heron_streamlet.plan.operators import AssignEventTime, Gather, Keyed, Read, Transform, Windowed, Write
from heron_streamlet.plan.stages import Outlet, Stage
from heron_streamlet.windowing.keyed_operators import KeyedOperator, WindowJoin
from heron_streamlet.windowing.window import SessionWindow, SlidingWindow
from heron_streamlet.windowing.window_assignment import Combiner, SessionAssignment, WindowAssignment

if TYPE_CHECKING:
    from heron_streamlet.arrow.assignment import ColumnAssignment
    from heron_streamlet.arrow.combiner import ColumnCombiner
    from heron_streamlet.arrow.gatherer import Gatherer

__all__ = ["StageHost"]

Send = Callable[[tuple[Any, ...]], object]
"""Sends a row."""


class StageHost(ABC):
    """A stage in one task.

    Attributes:
        component: the object that the text of the stage calls `component`. Its `clocks` has, by the number of a node,
            the `EventClock` of the source partition at hand.
        window_of: the operators of windows that outlets lead to, by number of their node.
    """

    component: Any

    def __init__(self, stage: Stage, window_of: Mapping[int, Windowed], *, combines: bool) -> None:
        """With `combines`, the values of a window are folded before they leave."""
        self.stage = stage
        self.window_of = window_of
        self._combines = combines
        self._combiners: list[Combiner | ColumnCombiner] = []
        self._gatherers: dict[int, Gatherer] = {}
        self._objects: list[Any] = []
        self.origin: Callable[[], str] | None = None
        """Says where the element at hand is in its source; None while there is none."""
        self.refused: list[OperatorError] = []
        """What failed in the stage of a source, until `take_refused`, where an engine does not override `failed`."""

    @abstractmethod
    def row(self, outlet: Outlet, values: str) -> str:
        """An expression that sends a row. `values` is the text of a tuple."""

    @abstractmethod
    def sender(self, outlet: Outlet) -> Send:
        """A function that sends rows."""

    @abstractmethod
    def late(self, count: int) -> None:
        """Counts windows that elements missed."""

    def failed(self, error: OperatorError) -> None:
        """Counts and reports what failed, while other readers of the same element go on.

        Raises:
            OperatorError: when the task has to end.
        """
        if not isinstance(self.stage.head.operator, Read):
            raise error  # of an engine that was written before this method
        self.refused.append(error)

    def counted(self, error: OperatorError) -> OperatorError:
        """Counts what the caller raises, and returns it: whoever catches it only reports it."""
        return error

    @abstractmethod
    def log(self, element: object) -> None:
        """Shows an element to the user: `Log`."""

    def row_function(self, outlet: Outlet) -> Send:
        """The quickest function that sends rows now; it may be another one later."""
        return self.sender(outlet)

    def set_up(self, context_of: Callable[[str], StageContext]) -> None:
        """Set up transformers and sinks."""
        for node in self.stage.nodes:
            operator = node.operator
            found: Any = operator.transformer if isinstance(operator, Transform) else None
            found = operator.sink if isinstance(operator, Write) else found
            if found is not None:
                found.setup(context_of(node.name))
                self._objects.append(found)

    def source(self) -> Source[Any]:
        """The source that the stage begins with.

        Raises:
            TypeError: when it begins with another operator.
        """
        operator = self.stage.head.operator
        if isinstance(operator, Read):
            return operator.source
        raise TypeError(self.stage.name)

    def keyed_operator(self) -> KeyedOperator:
        """The operator with state that the stage begins with.

        Raises:
            TypeError: when it begins with another operator.
        """
        operator = self.stage.head.operator
        if isinstance(operator, (Keyed, Windowed)):
            return operator.operator
        raise TypeError(self.stage.name)

    def event_times(self) -> dict[int, AssignEventTime]:
        """The operators that assign event time, by number of their node."""
        return {node.number: node.operator for node in self.stage.nodes if isinstance(node.operator, AssignEventTime)}

    @property
    def transactions(self) -> list[TransactionalSink[Any]]:
        """The sinks that take part in checkpoints."""
        return [each for each in self._objects if isinstance(each, TransactionalSink)]

    def assignment(self, outlet: Outlet) -> WindowAssignment | SessionAssignment:
        """Assigns the elements of an outlet to windows."""
        windowed, send = self.window_of[outlet.target], self.sender(outlet)
        if isinstance(windowed.window, SessionWindow):
            return SessionAssignment(windowed.window, send)
        operator, position = windowed.operator, outlet.position
        if isinstance(operator, WindowJoin):
            return WindowAssignment(windowed.window, lambda value: (position, value), send, None)
        fold = operator.fold  # type: ignore[attr-defined]  # any other operator of windows has one
        combiner: Combiner | None = None
        if self._combines:
            combiner = Combiner(_node(self.stage, outlet.source).step, fold, lambda: self.row_function(outlet))
            self._combiners.append(combiner)
        return WindowAssignment(windowed.window, fold.first, send, combiner)

    def column_assignment(self, outlet: Outlet) -> ColumnAssignment:
        """Assigns the rows of an outlet's batches to windows."""
        from heron_streamlet.arrow.aggregates import ColumnFold  # noqa: PLC0415  # pyarrow is optional
        from heron_streamlet.arrow.assignment import ColumnAssignment, distances_us  # noqa: PLC0415
        from heron_streamlet.arrow.combiner import ColumnCombiner  # noqa: PLC0415

        windowed = self.window_of[outlet.target]
        window, fold = windowed.window, windowed.operator.fold  # type: ignore[attr-defined]  # a fold of columns
        if not isinstance(window, SlidingWindow) or not isinstance(fold, ColumnFold):
            raise TypeError(windowed)
        starts, node = distances_us(window), _node(self.stage, outlet.source).step
        combiner = ColumnCombiner(node, fold, starts, lambda: self.row_function(outlet))
        if self._combines:
            self._combiners.append(combiner)
        return ColumnAssignment(window, windowed.columns or (), fold, combiner, holds=self._combines)

    def gatherer(
        self, node: int, operator: Gather, follow: Callable[[Any, Any, Any], None]
    ) -> Callable[[Any, Any, Any], None]:
        """A function that gathers elements of a node in batches; where they are acked, each is a batch."""
        from heron_streamlet.arrow.gatherer import Gatherer  # noqa: PLC0415  # pyarrow is optional

        rows = operator.rows if self._combines else 1
        found = self._gatherers[node] = Gatherer(_node(self.stage, node).step, operator.schema, rows, follow)
        return found.add

    @property
    def combines(self) -> bool:
        """Whether elements are combined or gathered before they leave."""
        return bool(self._combiners or self._gatherers)

    def flush(self) -> list[OperatorError]:
        """Sends what is gathered and combined: before a watermark, a checkpoint and the end. Returns what failed."""
        failed: list[OperatorError] = []
        for node in sorted(self._gatherers):  # one may feed a later one
            failed += self._gatherers[node].flush()
        for combiner in self._combiners:
            failed += combiner.flush()
        return failed

    def take_refused(self) -> list[OperatorError]:
        """What failed since the last call."""
        refused = self.refused.copy()
        self.refused.clear()
        return refused

    def close(self) -> None:
        """Closes the authors' objects."""
        with ExitStack() as closing:  # one that fails keeps no other open
            for each in reversed(self._objects):
                closing.callback(each.close)


def _node(stage: Stage, number: int) -> Node:
    return next(node for node in stage.nodes if node.number == number)
