"""Connects the code of a stage with a task of Heron: rows become tuples, and authors' objects are set up."""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping
from typing import Any

import cloudpickle

from heron.api import TopologyContext, TopologyReliabilityMode, api_constants
from heron_streamlet.connectors.transformer import StageContext
from heron_streamlet.failures import OperatorError
from heron_streamlet.plan.operators import Windowed
from heron_streamlet.plan.stages import Outlet, Stage
from heron_streamlet.runtime.stage_host import Send, StageHost
from heron_streamlet.runtime.total_count import TotalCount

__all__ = ["STAGE_KEY", "TaskHost", "packed", "stream_name"]

STAGE_KEY = "heron.streamlet.stage"
"""The component's configuration: its `Stage`, and the operators of windows that its outlets lead to."""

_COUNTS_METRIC_S = 10.0
_LAST_TRANSACTION = 1


def stream_name(outlet: Outlet) -> str:
    """The stream of an outlet. The first is the default stream, whose emits are the quickest."""
    return "default" if outlet.number == 0 else f"outlet-{outlet.number}"


class TaskHost(StageHost):
    """The stage of one task.

    Attributes:
        tracked: whether tuples are acked.
        saves: whether there are checkpoints.
    """

    def __init__(self, component: Any, config: Mapping[str, Any], context: TopologyContext) -> None:  # noqa: ANN401
        """`component` has `emit` with the signature of `row`."""
        mode = config.get(api_constants.TOPOLOGY_RELIABILITY_MODE)
        interval = config.get(api_constants.TOPOLOGY_STATEFUL_CHECKPOINT_INTERVAL_SECONDS)
        self.tracked = mode == TopologyReliabilityMode.ATLEAST_ONCE
        self.saves = mode == TopologyReliabilityMode.EFFECTIVELY_ONCE or (self.tracked and interval is not None)
        stage, window_of = _loaded(config)
        super().__init__(stage, window_of, combines=self.saves or not self.tracked)
        self.component = component
        component.author_place = f"the operators {', '.join(map(str, self.stage.nodes))}"
        self._prepared: set[int] = set()
        self._committed: set[int] = set()
        self._late, self._failed = TotalCount(), TotalCount()
        context.register_metric("failed", self._failed, _COUNTS_METRIC_S)
        if self.window_of or isinstance(self.stage.head.operator, Windowed):
            context.register_metric("late", self._late, _COUNTS_METRIC_S)
        self.set_up(lambda name: self.context_of(name, config, context))

    @staticmethod
    def context_of(name: str, config: Mapping[str, Any], context: TopologyContext) -> StageContext:
        """What an author's object learns about its task."""
        index, tasks = context.get_task_index(), context.get_parallelism()
        return StageContext(name, index, tasks, config, context.get_task_id())

    def row(self, outlet: Outlet, values: str) -> str:
        """`StageHost.row`."""
        stream = stream_name(outlet)
        if self.tracked:
            return f"component.send({values}, {stream!r})"
        return f"component.emit({values})" if outlet.number == 0 else f"component.emit({values}, stream={stream!r})"

    def sender(self, outlet: Outlet) -> Send:
        """`StageHost.sender`."""
        component, stream = self.component, stream_name(outlet)
        if self.tracked:
            return lambda row: component.send(row, stream)
        return lambda row: component.emit(row, stream=stream)  # `emit` is another function after a new plan

    def row_function(self, outlet: Outlet) -> Send:
        """The function for rows until the next plan; the generated emit is the quickest."""
        if outlet.number == 0 and not self.tracked:
            emit: Callable[[tuple[Any, ...]], object] = self.component.emit
            return emit
        return self.sender(outlet)

    def commit_all(self) -> None:
        """Without checkpoints, at the end of the input: show all that was put into sinks with transactions.

        What fails is raised. Another call goes on where this one failed.
        """
        for number, sink in enumerate(self.transactions):
            if number not in self._prepared:
                sink.prepare(_LAST_TRANSACTION)
                self._prepared.add(number)
            if number not in self._committed:
                sink.commit(_LAST_TRANSACTION)
                self._committed.add(number)

    def late(self, count: int) -> None:
        """`StageHost.late`."""
        self._late.incr(count)

    def failed(self, error: OperatorError) -> None:
        """`StageHost.failed`."""
        self.counted(error)
        self.component.report_error(error)

    def counted(self, error: OperatorError) -> OperatorError:
        """`StageHost.counted`."""
        self._failed.incr(error.count)
        return error

    def log(self, element: object) -> None:
        """`StageHost.log`: prints it, to the log of the task."""
        print(element, flush=True)  # noqa: T201  # what `log` is for


def packed(stage: Stage, window_of: Mapping[int, Windowed]) -> str:
    """The configuration of a component with this stage."""
    return base64.b64encode(cloudpickle.dumps((stage, dict(window_of)))).decode("ascii")


def _loaded(config: Mapping[str, Any]) -> tuple[Stage, dict[int, Windowed]]:
    stage: tuple[Stage, dict[int, Windowed]] = cloudpickle.loads(base64.b64decode(config[STAGE_KEY]))
    return stage
