"""Fusion: the graph of operators becomes stages, each of which is one step of an engine without a shuffle inside. Pure.

An operator joins the stage of its input if it needs no other order or place of the elements: it keeps no state by key,
has one input, and the same number of partitions. Unions disappear: their consumers read all of their inputs. What
ends a stream joins the stage of a source where the engine allows it: where nothing is read again by itself.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from heron.errors import TopologyError
from heron_streamlet.plan.graph import EARLY, LATE, RESULTS, Graph, Input, Node
from heron_streamlet.plan.operators import Consume, Early, Keyed, Log, Read, Repartition, Union, Windowed, Write
from heron_streamlet.windowing.keyed_operators import Distinct
from heron_streamlet.windowing.window import SessionWindow

__all__ = ["ENDS", "End", "Form", "Outlet", "Stage", "StagePlan", "fuse"]

End: TypeAlias = type[Consume] | type[Log] | type[Write]
ENDS: tuple[End, ...] = (Consume, Log, Write)
"""The operators that end a stream."""

_HEADS = (Read, Keyed, Windowed, Repartition)
_LONGEST_NAME = 60


class Form(enum.Enum):
    """How an element becomes a row between stages."""

    ELEMENT = enum.auto()
    PAIR = enum.auto()
    ITSELF = enum.auto()  # the element is its own key
    WINDOW = enum.auto()  # assigned to windows of event time
    SESSION = enum.auto()  # a window of event time of its own
    COLUMNS = enum.auto()  # rows of a batch that are assigned to windows of event time

    @property
    def keyed(self) -> bool:
        """Whether equal keys go to the same task."""
        return self is not Form.ELEMENT

    @property
    def assigned(self) -> bool:
        """Whether elements are assigned to windows before they leave the stage."""
        return self in (Form.WINDOW, Form.SESSION, Form.COLUMNS)


_FIELDS = {
    Form.ELEMENT: ("_output_",),
    Form.PAIR: ("key", "value"),
    Form.ITSELF: ("key", "value"),
    Form.WINDOW: ("key", "start", "windows", "accumulator"),
    Form.SESSION: ("key", "value", "time"),
    Form.COLUMNS: ("key", "start", "windows", "accumulator"),
}


@dataclass(frozen=True, slots=True)
class Outlet:
    """Rows that leave a stage for another one.

    Attributes:
        number: the place of the outlet in its stage.
        source: the node whose output leaves.
        target: the node that reads it, the head of another stage.
        position: the position of this input at the target.
        timed: whether rows have the event time and the bound of their element, as the last two values.
        whole: whether all elements have the same key, None.
        columns: whether a row is a record batch, which may have megabytes.
    """

    number: int
    source: int
    output: str
    target: int
    position: int
    form: Form
    timed: bool
    whole: bool = False
    columns: bool = False

    @property
    def fields(self) -> tuple[str, ...]:
        """The names of the values of a row."""
        fields = _FIELDS[self.form]
        return (*fields, "_time_", "_bound_") if self.timed else fields


@dataclass(frozen=True, slots=True)
class Stage:
    """Fused operators: a head, and operators that follow it without a shuffle.

    Attributes:
        by_clock: whether the head has windows that follow the clock of its task.
        behind_us: how far elements that reach the head may be behind the watermark, because windows before it close
            later than they end. The head's own windows wait as much longer.
    """

    head: Node
    nodes: tuple[Node, ...]
    outlets: tuple[Outlet, ...]
    by_clock: bool = False
    behind_us: int = 0

    @property
    def name(self) -> str:
        """``HEAD`` or ``HEAD-to-LAST``."""
        names = [node.name for node in self.nodes]
        if len(names) == 1:
            return names[0]
        name = f"{names[0]}-to-{names[-1]}"
        return name if len(name) <= _LONGEST_NAME else names[0]

    @property
    def ends(self) -> bool:
        """Whether a stream ends here."""
        return _ends(self.nodes)

    @property
    def early_nodes(self) -> list[tuple[Node, Early]]:
        """The operators that read early results of the head."""
        return [(node, node.operator) for node in self.nodes if isinstance(node.operator, Early)]

    def line(self) -> str:
        """The stage as text: its operators and partitions."""
        return f"{self.name} x {self.head.partitions}: {' '.join(node.name for node in self.nodes)}"


@dataclass(frozen=True, slots=True)
class StagePlan:
    """All stages of a pipeline. A stage reads only stages before it."""

    graph: Graph
    stages: tuple[Stage, ...]

    def text(self) -> dict[str, list[str]]:
        """The operators and the stages, a line for each: `heron.spi.engine.PIPELINE_KEY`."""
        return {"operators": self.graph.lines(), "stages": [stage.line() for stage in self.stages]}

    def inputs(self, stage: Stage) -> Iterator[tuple[Stage, Outlet]]:
        """The outlets that lead to a stage, with their stages."""
        for other in self.stages:
            for outlet in other.outlets:
                if outlet.target == stage.head.number:
                    yield other, outlet


def fuse(graph: Graph, ends_in_sources: tuple[End, ...] = ()) -> StagePlan:
    """The stages of a graph. `ends_in_sources` may join the stage of a source.

    Raises:
        TopologyError: when nothing reads the results of a source's stage.
    """
    head_of = _heads(graph, ends_in_sources)
    behind_us = _delays(graph)
    stages = []
    for head in sorted(set(head_of.values())):
        nodes = tuple(graph.nodes[number] for number, its_head in head_of.items() if its_head == head)
        outlets = tuple(_outlets(graph, nodes, head_of))
        if isinstance(graph.nodes[head].operator, Read) and not (outlets or _ends(nodes)):
            msg = f"{nodes[-1]}: nothing reads its results; end the stream with log, consume or to_sink"
            raise TopologyError(msg)
        by_clock = _by_clock(graph, graph.nodes[head])
        stages.append(Stage(graph.nodes[head], nodes, outlets, by_clock, 0 if by_clock else behind_us[head]))
    return StagePlan(graph, tuple(stages))


def _heads(graph: Graph, ends_in_sources: tuple[End, ...]) -> dict[int, int]:
    """The number of the head of each node's stage, by number of the node; unions have no stage."""
    head_of: dict[int, int] = {}
    for node in graph.nodes:
        if not isinstance(node.operator, Union):
            joined = _joined_head(graph, node, head_of, ends_in_sources)
            head_of[node.number] = node.number if joined is None else joined
    return head_of


def _joined_head(graph: Graph, node: Node, head_of: Mapping[int, int], ends_in_sources: tuple[End, ...]) -> int | None:
    """The head of the stage of its input that a node joins; None if it begins a stage."""
    producers = _producers(graph, node)
    if len(producers) != 1 or not _fuses(node, producers[0], graph.nodes[producers[0].node]):
        return None
    head = graph.nodes[head_of[producers[0].node]]
    if isinstance(node.operator, ENDS) and not _may_end(node, head, ends_in_sources):
        return None
    return head.number


def _delays(graph: Graph) -> list[int]:
    """How far what a node reads may be behind the watermark, for each node."""
    reads: list[int] = []
    results: list[int] = []
    for node in graph.nodes:
        reads.append(max((reads[i.node] if i.output == LATE else results[i.node] for i in node.inputs), default=0))
        delay_us = node.operator.operator.delay_us if isinstance(node.operator, Windowed) else 0
        results.append(reads[-1] + delay_us if node.timed else 0)
    return reads


def _fuses(node: Node, read: Input, parent: Node) -> bool:
    """Whether a node with one input may join the stage of that input."""
    return (
        not isinstance(node.operator, _HEADS)
        and read.output in (RESULTS, EARLY)
        and parent.partitions == node.partitions
    )


def _may_end(node: Node, head: Node, ends_in_sources: tuple[End, ...]) -> bool:
    """Whether a node that ends a stream may join a stage. Elsewhere it consumes rows that the source has acked."""
    return not isinstance(head.operator, Read) or isinstance(node.operator, ends_in_sources)


def _ends(nodes: tuple[Node, ...]) -> bool:
    return any(isinstance(node.operator, ENDS) for node in nodes)


def _producers(graph: Graph, node: Node) -> list[Input]:
    """The inputs of a node, where each union is replaced by its own inputs."""
    return [producer for each in node.inputs for producer in _resolved(graph, each)]


def _by_clock(graph: Graph, node: Node) -> bool:
    operator = node.operator
    return isinstance(operator, Windowed) and (operator.window.clock or not graph.nodes[node.inputs[0].node].timed)


def _outlets(graph: Graph, nodes: tuple[Node, ...], head_of: dict[int, int]) -> Iterator[Outlet]:
    """What leaves a stage. Late elements leave the stages that assign them, and the stage that closes their windows."""
    own = {node.number for node in nodes}
    heads = [node for node in graph.nodes if head_of.get(node.number) == node.number]
    reads = [
        (producer, target, position)
        for target in heads
        for position, each in enumerate(target.inputs)
        for producer in _resolved(graph, each)
    ]
    assigns = {node.number for node in nodes if isinstance(node.operator, Windowed)}
    number = 0
    for producer, target, position in reads:
        if producer.output == RESULTS and producer.node in own:
            outlet = _outlet(graph, number, producer, target, position)
            assigns.update([target.number] if outlet.form.assigned else [])
            number += 1
            yield outlet
    for producer, target, position in reads:
        if producer.output == LATE and producer.node in assigns:
            yield _outlet(graph, number, producer, target, position)
            number += 1


def _resolved(graph: Graph, each: Input) -> list[Input]:
    node = graph.nodes[each.node]
    return _producers(graph, node) if isinstance(node.operator, Union) else [each]


def _outlet(graph: Graph, number: int, producer: Input, target: Node, position: int) -> Outlet:
    operator, source = target.operator, graph.nodes[producer.node]
    late = producer.output == LATE
    timed = graph.nodes[source.inputs[0].node].timed and not _by_clock(graph, source) if late else source.timed
    form, whole = Form.ELEMENT, False
    if isinstance(operator, Keyed):
        form = Form.ITSELF if isinstance(operator.operator, Distinct) else Form.PAIR
    elif isinstance(operator, Windowed):
        whole = operator.whole
        form = Form.SESSION if isinstance(operator.window, SessionWindow) else Form.WINDOW
        form = Form.PAIR if _by_clock(graph, target) else form
        form = form if operator.columns is None else Form.COLUMNS
        timed = False
    columns = form is Form.ELEMENT and (graph.nodes[source.inputs[0].node] if late else source).columns
    return Outlet(number, producer.node, producer.output, target.number, position, form, timed, whole, columns)
