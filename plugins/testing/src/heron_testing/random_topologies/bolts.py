"""The bolts of random topologies: they remember what they receive, and emit, ack and fail as their program says."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from heron.api import Bolt, TopologyContext, Tuple
from heron_testing.random_topologies.lineage import FIELDS, Fate, children_of, fate_of
from heron_testing.random_topologies.spouts import OUTPUTS, RaisedByProgram, direct_task
from heron_testing.random_topologies.task_memory import Remembering, StatefulTask, program_of
from heron_testing.random_topologies.values import described

if TYPE_CHECKING:
    from pyarrow import RecordBatch

__all__ = [
    "BOLT_CLASSES",
    "BatchBolt",
    "MixedBolt",
    "RowBolt",
    "StatefulBatchBolt",
    "StatefulMixedBolt",
    "StatefulRowBolt",
]

Row = tuple[str, int, Any, Any]
"""Identity, attempt, key and value."""


class RowBolt(Remembering, Bolt):
    """Receives and emits rows."""

    outputs = OUTPUTS

    def initialize(self, config: Mapping[str, Any], context: TopologyContext) -> None:
        """Begin with nothing, or with what the checkpoint has."""
        self.program, self.context = program_of(config), context
        self.own = next(each for each in self.program.bolts if each.name == context.get_component_id())
        self.task = self.recall(config, context)
        self.kept: list[Tuple] = []

    def process(self, tup: Tuple) -> None:
        """Remember a tuple, then do with it what the program says."""
        row: Row = tuple(tup.values)
        self.remember(tup.component, tup.stream, tup.task, row)
        fate, own = fate_of(self.own, row[0], row[1]), self.own
        if fate is Fate.RAISED and own.raises_first:
            raise RaisedByProgram(row[0])
        if fate is Fate.ACKED and own.moment != "process":
            self.put_off(tup, row)
            return
        self.pass_on([row], [tup])
        if fate is Fate.RAISED:
            raise RaisedByProgram(row[0])
        (self.fail if fate is Fate.FAILED else self.ack)(tup)
        if own.acks_twice and fate is Fate.ACKED:
            self.ack(tup)

    def remember(self, component: str, stream: str, task: int, row: Row) -> None:
        """Remember a received row."""
        identity, attempt, key, value = row
        self.task.rows.append((component, stream, task, identity, attempt, described(key), described(value)))

    def put_off(self, tup: Tuple, row: Row) -> None:
        """Emit and ack later."""
        if self.own.moment == "queued":
            collector = self.context.threadsafe_collector()
            for values, stream in self.outgoing([row]):
                direct = direct_task(self, stream, values[0])
                anchors = (tup,) if self.own.anchored else None
                collector.emit(values, stream, anchors=anchors, direct_task=direct)
            collector.ack(tup)
            return
        self.task.held.append(row)
        if self.own.moment == "tick":
            self.kept.append(tup)
        else:
            self.ack(tup)

    def process_tick(self, tup: Tuple) -> None:
        """Emit and ack what was put off."""
        if self.own.moment != "tick":
            return
        kept, held = self.kept, list(self.task.held)
        self.kept = []
        self.task.held.clear()
        for place, row in enumerate(held):
            anchors = kept[place : place + 1]
            self.pass_on([row], anchors)
            for each in anchors:
                self.ack(each)

    def finish(self) -> None:
        """Emit what was put off."""
        held = list(self.task.held)
        self.task.held.clear()
        if held:
            self.pass_on(held, [])

    def pass_on(self, rows: Sequence[Row], anchors: list[Any]) -> None:
        """Emit what these rows lead to."""
        under = anchors if self.own.anchored and anchors else None
        for values, stream in self.outgoing(rows):
            self.emit(values, stream, anchors=under, direct_task=direct_task(self, stream, values[0]))

    def outgoing(self, rows: Sequence[Row]) -> list[tuple[Row, str]]:
        """The tuples that these rows lead to, with their streams."""
        return [
            ((child, attempt, key, value), stream)
            for identity, attempt, key, value in rows
            for child, stream in children_of(self.own, identity)
        ]


class MixedBolt(RowBolt):
    """Receives rows and emits columns."""

    columns = True

    def pass_on(self, rows: Sequence[Row], anchors: list[Any]) -> None:
        """Emit a batch for each stream; for each task where the emit names one."""
        batches: dict[tuple[str, int | None], list[Row]] = {}
        for values, stream in self.outgoing(rows):
            batches.setdefault((stream, direct_task(self, stream, values[0])), []).append(values)
        under = anchors if self.own.anchored and anchors else None
        for (stream, direct), each in batches.items():
            batch = dict(zip(FIELDS, map(list, zip(*each, strict=True)), strict=True))
            self.emit_columns(batch, stream, under, direct)


class BatchBolt(MixedBolt):
    """Receives columns, and emits rows or columns."""

    def process_columns(self, batch: RecordBatch) -> None:
        """Remember the rows of a batch, then do with it what the program says of any of them."""
        component, stream, task = self.received_from
        rows: list[Row] = [tuple(each.values()) for each in batch.to_pylist()]
        for row in rows:
            self.remember(component, stream, task, row)
        fates = {fate_of(self.own, row[0], row[1]) for row in rows}
        if self.own.moment == "finish":
            self.task.held += rows
        else:
            self.pass_on(rows, [batch])
        if Fate.RAISED in fates:
            raise RaisedByProgram(rows[0][0])
        (self.fail if Fate.FAILED in fates else self.ack)(batch)

    def pass_on(self, rows: Sequence[Row], anchors: list[Any]) -> None:
        """Emit rows or columns."""
        (MixedBolt if self.own.emits == "columns" else RowBolt).pass_on(self, rows, anchors)


class StatefulRowBolt(StatefulTask, RowBolt):
    """The same with state."""


class StatefulMixedBolt(StatefulTask, MixedBolt):
    """The same with state."""


class StatefulBatchBolt(StatefulTask, BatchBolt):
    """The same with state."""


BOLT_CLASSES: Mapping[tuple[str, str, bool], type[RowBolt]] = {
    ("rows", "rows", False): RowBolt,
    ("rows", "columns", False): MixedBolt,
    ("columns", "rows", False): BatchBolt,
    ("columns", "columns", False): BatchBolt,
    ("rows", "rows", True): StatefulRowBolt,
    ("rows", "columns", True): StatefulMixedBolt,
    ("columns", "rows", True): StatefulBatchBolt,
    ("columns", "columns", True): StatefulBatchBolt,
}
"""The class for what a bolt receives, what it emits, and whether it keeps state."""
