"""A pipeline as Spark runs it: levels of stages with one shuffle between them. Pure.

A slot is a share of all keys, and of all elements without a key: one Spark task for each level. Level 0 reads the
source partitions, one task each. A stage is on the level behind the last of its inputs, so a job evaluates it once.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from heron_streamlet.connectors.sinks import TransactionalSink
from heron_streamlet.plan.graph import Graph, Node
from heron_streamlet.plan.operators import Consume, Keyed, Log, Read, Windowed, Write
from heron_streamlet.plan.stages import Stage, StagePlan, fuse

__all__ = ["SourcePartition", "SparkPlan", "spark_plan", "spark_stages"]


@dataclass(frozen=True, slots=True)
class SourcePartition:
    """One partition of a source: the number of its node, that node's name, and the partition's own name."""

    node: int
    operator: str
    name: str


@dataclass(frozen=True, slots=True)
class SparkPlan:
    """What every task of the pipeline knows.

    Attributes:
        run: an id of this run; what workers keep between micro-batches belongs to it.
        level_of: the level of each stage, by the number of its head.
        window_of: the operators of windows, by the number of their node.
        row_limit: the most elements that a batch reads of a partition; None for no limit.
        time_limit_s: how long a batch reads a partition at most, in seconds; None for no limit.
        saves: whether state outlives the job.
    """

    name: str
    run: str
    stages: tuple[Stage, ...]
    partitions: tuple[SourcePartition, ...]
    slots: int
    groups: int
    level_of: Mapping[int, int]
    window_of: Mapping[int, Windowed]
    config: Mapping[str, Any] = field(default_factory=dict)
    row_limit: int | None = None
    time_limit_s: float | None = None
    saves: bool = False

    @property
    def levels(self) -> int:
        """The number of levels, that of the sources included."""
        return max(self.level_of.values(), default=0) + 1

    def stage(self, head: int) -> Stage:
        """The stage with this head."""
        return next(stage for stage in self.stages if stage.head.number == head)

    def targets(self, stage: Stage) -> list[int]:
        """The heads of the stages that read a stage."""
        return sorted({outlet.target for outlet in stage.outlets})

    def transactions(self) -> Iterator[Node]:
        """The operators that write to sinks with transactions."""
        for stage in self.stages:
            for node in stage.nodes:
                if isinstance(node.operator, Write) and isinstance(node.operator.sink, TransactionalSink):
                    yield node

    @property
    def keyed(self) -> list[Node]:
        """The operators with state."""
        return [stage.head for stage in self.stages if isinstance(stage.head.operator, (Keyed, Windowed))]


def spark_stages(graph: Graph) -> StagePlan:
    """The stages of a graph. Sinks are no part of a source's stage: their data is shown by batch, behind the reading.

    Raises:
        TopologyError: when nothing reads the results of a source's stage.
    """
    return fuse(graph, (Consume, Log))


def spark_plan(plan: StagePlan, name: str, run: str, slots: int, groups: int, **others: Any) -> SparkPlan:  # noqa: ANN401
    """The levels of a pipeline; reads the names of the partitions of its sources."""
    level_of: dict[int, int] = {}
    partitions: list[SourcePartition] = []
    for stage in plan.stages:
        head = stage.head
        inputs = [level_of[other.head.number] for other, _ in plan.inputs(stage)]
        level_of[head.number] = max(inputs) + 1 if inputs else 0
        if isinstance(head.operator, Read):
            names = head.operator.source.partitions(head.partitions)
            partitions += [SourcePartition(head.number, head.name, each) for each in names]
    window_of = {node.number: node.operator for node in plan.graph.nodes if isinstance(node.operator, Windowed)}
    return SparkPlan(name, run, plan.stages, tuple(partitions), slots, groups, level_of, window_of, **others)
