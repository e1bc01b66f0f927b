"""The graph of a pipeline, as plain values. Compilers read it; nothing in it depends on an engine."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import cloudpickle

from heron.errors import TopologyError
from heron_streamlet.failures import Step
from heron_streamlet.plan.operators import (
    AssignEventTime,
    Early,
    FilterBy,
    Gather,
    Keyed,
    Operator,
    Pass,
    Read,
    Repartition,
    Union,
    Windowed,
)
from heron_streamlet.windowing.keyed_operators import FoldedWindows
from heron_streamlet.windowing.window import SlidingWindow

__all__ = ["EARLY", "LATE", "RESULTS", "Graph", "Input", "Node", "check_picklable", "checked_graph"]

RESULTS = "results"
LATE = "late"
"""The output of a windowed node for elements that are late."""
EARLY = "early"
"""The output of a windowed node for results so far; only `Early` reads it, in the same tasks."""

_US = 1_000_000
_SHORTEST_EARLY_US = 10_000  # ticks more often than this would take a task much of its time
_BEFORE_EVENT_TIME = "source, map, flat_map, filter, transform, key_by, clone or split"


@dataclass(frozen=True, slots=True)
class Input:
    """An output of another node."""

    node: int
    output: str = RESULTS


@dataclass(frozen=True, slots=True)
class Node:
    """One operator of a pipeline.

    Attributes:
        number: the place of the node in the graph; the inputs of a node have smaller numbers.
        place: file and line where the author added it.
        timed: whether its results have event time.
        columns: whether its results are record batches; event times are then arrays.
        on_error: the rule for records that fail in it, of `heron_streamlet.failures.RULES`; empty for none.
    """

    number: int
    name: str
    operator: Operator
    inputs: tuple[Input, ...]
    partitions: int
    place: str
    timed: bool
    columns: bool = False
    on_error: str = ""

    def __str__(self) -> str:
        return str(self.step)

    @property
    def step(self) -> Step:
        """The node as its failures need it."""
        return Step(self.name, self.number, self.place, self.on_error)


@dataclass(frozen=True, slots=True)
class Graph:
    """The nodes of a pipeline, in the order in which the author added them."""

    nodes: tuple[Node, ...]

    def consumers(self, node: Node) -> Iterator[tuple[Node, int, str]]:
        """Each node that reads `node`, with the position of its input and the output that it reads."""
        for other in self.nodes:
            for position, each in enumerate(other.inputs):
                if each.node == node.number:
                    yield other, position, each.output

    def lines(self) -> list[str]:
        """The graph as text: one line for each node."""
        return [
            f"{node.name} x {node.partitions}"
            + (f" <- {', '.join(self._shown(each) for each in node.inputs)}" if node.inputs else "")
            for node in self.nodes
        ]

    def _shown(self, each: Input) -> str:
        name = self.nodes[each.node].name
        return name if each.output == RESULTS else f"{name}.{each.output}"


def checked_graph(nodes: Sequence[Node]) -> Graph:
    """The graph of these nodes.

    Raises:
        TopologyError: when the nodes do not make a pipeline: no source, a name twice, event time where the order of the
            source is lost, inputs with and without event time at one node, windows that do not fit their inputs.
    """
    graph = Graph(tuple(nodes))
    if not any(isinstance(node.operator, Read) for node in nodes):
        msg = "the pipeline has no source; begin with Builder.new_source"
        raise TopologyError(msg)
    seen: dict[str, Node] = {}
    for node in nodes:
        if (other := seen.setdefault(node.name, node)) is not node:
            msg = f"two operators have the name {node.name!r}, at {other.place} and {node.place}; rename one"
            raise TopologyError(msg)
        if isinstance(node.operator, Read) and not any(graph.consumers(node)):
            msg = f"{node}: nothing reads this stream; end it with log, consume or to_sink"
            raise TopologyError(msg)
        _check_inputs(graph, node)
        if isinstance(node.operator, Windowed) and node.operator.columns is not None:
            _check_columns(graph, node)
        _check_keys(graph, node)
        if isinstance(node.operator, Early):
            _check_early(graph, node, node.operator)
        if isinstance(node.operator, AssignEventTime):
            _check_order(graph, node)
    return graph


def check_picklable(node: Node) -> None:
    """Refuse an operator that cannot travel to a task.

    Raises:
        TopologyError: when it cannot be pickled.
    """
    try:
        cloudpickle.dumps(node.operator)
    except Exception as error:
        msg = (
            f"operator {node}: what it uses cannot be sent to its tasks: {error}; open files, locks and connections in "
            "Transformer.setup, Sink.setup or Source.open"
        )
        raise TopologyError(msg) from error


def _check_inputs(graph: Graph, node: Node) -> None:
    inputs = [graph.nodes[each.node] for each in node.inputs]
    if len({each.timed for each in inputs}) > 1:
        timed = next(each for each in inputs if each.timed)
        clock = next(each for each in inputs if not each.timed)
        msg = (
            f"{node}: the input {timed.name!r} has event time and {clock.name!r} has not; call event_time on both "
            "streams, or on neither"
        )
        raise TopologyError(msg)


def _check_columns(graph: Graph, node: Node) -> None:
    source = graph.nodes[node.inputs[0].node]
    if not source.timed:
        msg = f"{node}: windows of columns need event time, which {source.name!r} has not; call event_time before them"
        raise TopologyError(msg)


def _check_keys(graph: Graph, node: Node) -> None:
    """Results of windows are pairs whose first value is a window: they have to be keyed before operators by key."""
    if isinstance(node.operator, Keyed) or (isinstance(node.operator, Windowed) and not node.operator.whole):
        for each in node.inputs:
            if (windowed := _windows_in_keys(graph, each)) is not None:
                msg = (
                    f"{node}: the keys of its input are the windows of {windowed}, and windows cannot be keys; call "
                    "key_by(lambda pair: pair[0].key, lambda pair: pair[1]) before it"
                )
                raise TopologyError(msg)


def _windows_in_keys(graph: Graph, each: Input) -> Node | None:
    """The operator whose windows are the keys of a stream; None for a stream with other keys."""
    node = graph.nodes[each.node]
    if each.output != RESULTS:
        return None
    if isinstance(node.operator, Windowed):
        return node
    passes = isinstance(node.operator, (FilterBy, Pass, Repartition, Union))
    found = (_windows_in_keys(graph, one) for one in node.inputs if passes)
    return next((one for one in found if one is not None), None)


def _check_early(graph: Graph, node: Node, early: Early) -> None:
    source = graph.nodes[node.inputs[0].node]
    operator = source.operator
    if not isinstance(operator, Windowed) or not isinstance(operator.operator, FoldedWindows):
        msg = f"{node}: {source} gives no early results: a join has pairs, and no result so far; read its results"
        raise TopologyError(msg)
    if node.partitions != source.partitions:
        msg = (
            f"{node}: early results come from the {source.partitions} tasks of {source.name!r}, and not from "
            f"{node.partitions}; call repartition behind early, or set_num_partitions on {source.name!r}"
        )
        raise TopologyError(msg)
    every_s = early.every_us / _US
    if early.every_us < _SHORTEST_EARLY_US:
        msg = f"{node}: early results every {every_s:g} s; the shortest time is {_SHORTEST_EARLY_US / _US:g} s"
        raise TopologyError(msg)
    window = operator.window
    open_us = window.size_us + window.allowed_lateness_us if isinstance(window, SlidingWindow) else early.every_us
    if early.every_us > open_us:
        msg = (
            f"{node}: early results every {every_s:g} s: the windows of {source.name!r} are open for "
            f"{open_us / _US:g} s, so most would have none; give a shorter time"
        )
        raise TopologyError(msg)


def _check_order(graph: Graph, node: Node) -> None:
    """The bound of an element needs the order of its source partition, which ends where streams are divided."""
    current = node
    while current.inputs:
        parent = graph.nodes[current.inputs[0].node]
        divided = isinstance(current.operator, (Keyed, Windowed, Union, Repartition, Gather))
        if divided or current.partitions != parent.partitions or current.inputs[0].output != RESULTS:
            what = current.name if divided else f"{current.name} with {current.partitions} partitions"
            msg = (
                f"{node}: event_time after {what!r} cannot know the order of the source; call it directly after "
                f"{_BEFORE_EVENT_TIME}, in the number of partitions of the source"
            )
            raise TopologyError(msg)
        if isinstance(parent.operator, AssignEventTime):
            msg = f"{node}: the stream has event time already, of {parent}; remove one"
            raise TopologyError(msg)
        current = parent
