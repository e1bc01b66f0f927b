"""Connects the code of a stage with a task of Heron: rows become tuples, and authors' objects are set up."""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping
from typing import Any

import cloudpickle

from heron.api import CountMetric, TopologyContext, TopologyReliabilityMode, api_constants
from heron_streamlet.keyed_operators import KeyedOperator, WindowJoin
from heron_streamlet.operators import AssignEventTime, Keyed, Read, Transform, Windowed, Write
from heron_streamlet.sinks import TransactionalSink
from heron_streamlet.sources import Source
from heron_streamlet.stage_code import StageHost
from heron_streamlet.stages import Outlet, Stage
from heron_streamlet.transformer import StageContext
from heron_streamlet.window import SessionWindow
from heron_streamlet.window_assignment import Combiner, SessionAssignment, WindowAssignment

__all__ = ["STAGE_KEY", "TaskHost", "packed", "stream_name"]

STAGE_KEY = "heron.streamlet.stage"
"""The component's configuration: its `Stage`, and the operators of windows that its outlets lead to."""

_LATE_METRIC_S = 10.0


def stream_name(outlet: Outlet) -> str:
    """The stream of an outlet. The first is the default stream, whose emits are the quickest."""
    return "default" if outlet.number == 0 else f"outlet-{outlet.number}"


class TaskHost(StageHost):
    """The stage of one task.

    Attributes:
        tracked: whether tuples are acked.
        window_of: the operators of windows that outlets lead to, by number of their node.
    """

    def __init__(self, component: Any, config: Mapping[str, Any], context: TopologyContext) -> None:  # noqa: ANN401
        """`component` has `emit` with the signature of `row`."""
        self.component: Any = component
        self.stage, self.window_of = _loaded(config)
        mode = config.get(api_constants.TOPOLOGY_RELIABILITY_MODE)
        interval = config.get(api_constants.TOPOLOGY_STATEFUL_CHECKPOINT_INTERVAL_SECONDS)
        self.tracked = mode == TopologyReliabilityMode.ATLEAST_ONCE
        self.saves = mode == TopologyReliabilityMode.EFFECTIVELY_ONCE or (self.tracked and interval is not None)
        self._combines = self.saves or not self.tracked
        self._combiners: list[Combiner] = []
        self._late = CountMetric()
        if self.window_of or isinstance(self.stage.head.operator, Windowed):
            context.register_metric("late", self._late, _LATE_METRIC_S)
        self._objects: list[Any] = []
        for node in self.stage.nodes:
            operator = node.operator
            found: Any = operator.transformer if isinstance(operator, Transform) else None
            found = operator.sink if isinstance(operator, Write) else found
            if found is not None:
                found.setup(self.context_of(node.name, config, context))
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

    @staticmethod
    def context_of(name: str, config: Mapping[str, Any], context: TopologyContext) -> StageContext:
        """What an author's object learns about its task."""
        index, tasks = context.get_task_index(), context.get_parallelism()
        return StageContext(name, index, tasks, config, context.get_task_id())

    @property
    def transactions(self) -> list[TransactionalSink[Any]]:
        """The sinks that take part in checkpoints."""
        return [each for each in self._objects if isinstance(each, TransactionalSink)]

    def row(self, outlet: Outlet, values: str) -> str:
        """`StageHost.row`."""
        stream = stream_name(outlet)
        if self.tracked:
            return f"component.send({values}, {stream!r})"
        return f"component.emit({values})" if outlet.number == 0 else f"component.emit({values}, stream={stream!r})"

    def assignment(self, outlet: Outlet) -> WindowAssignment | SessionAssignment:
        """`StageHost.assignment`."""
        windowed, send = self.window_of[outlet.target], self._sender(outlet)
        if isinstance(windowed.window, SessionWindow):
            return SessionAssignment(windowed.window, send)
        operator, position = windowed.operator, outlet.position
        if isinstance(operator, WindowJoin):
            return WindowAssignment(windowed.window, lambda value: (position, value), send, None)
        fold = operator.fold  # type: ignore[attr-defined]  # any other operator of windows has one
        combiner = None
        if self._combines:
            combiner = Combiner(fold, lambda: self._row_function(outlet))
            self._combiners.append(combiner)
        return WindowAssignment(windowed.window, fold.first, send, combiner)

    @property
    def combines(self) -> bool:
        """Whether elements are combined before they leave."""
        return bool(self._combiners)

    def late(self, count: int) -> None:
        """`StageHost.late`."""
        self._late.incr(count)

    def flush(self) -> None:
        """Sends what is combined: before a watermark, a checkpoint and the end."""
        for combiner in self._combiners:
            combiner.flush()

    def close(self) -> None:
        """Closes the authors' objects."""
        for each in self._objects:
            each.close()

    def _sender(self, outlet: Outlet) -> Callable[[tuple[Any, ...]], object]:
        component, stream = self.component, stream_name(outlet)
        if self.tracked:
            return lambda row: component.send(row, stream)
        return lambda row: component.emit(row, stream=stream)  # `emit` is another function after a new plan

    def _row_function(self, outlet: Outlet) -> Callable[[tuple[Any, ...]], object]:
        """The function for rows until the next plan; the generated emit is the quickest."""
        if outlet.number == 0 and not self.tracked:
            emit: Callable[[tuple[Any, ...]], object] = self.component.emit
            return emit
        return self._sender(outlet)


def packed(stage: Stage, window_of: Mapping[int, Windowed]) -> str:
    """The configuration of a component with this stage."""
    return base64.b64encode(cloudpickle.dumps((stage, dict(window_of)))).decode("ascii")


def _loaded(config: Mapping[str, Any]) -> tuple[Stage, dict[int, Windowed]]:
    stage: tuple[Stage, dict[int, Windowed]] = cloudpickle.loads(base64.b64decode(config[STAGE_KEY]))
    return stage
