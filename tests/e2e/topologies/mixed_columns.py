"""Rows and columns in one topology, at least once: numbers go through bolts of both forms and are counted by both.

The spout emits batches as one root (``unit``), with an id for each row (``ids``), or rows (``rows``). Some bolts fail
what they see for the first time: `ROW_FAILS` a number in a bolt of rows, `COLUMN_FAILS` a batch in a bolt of columns.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
from recording import arguments, write_result

from heron.api import Bolt, Grouping, Spout, TopologyBuilder, TopologyContext, Tuple, api_constants

ROWS = 100
ROW_FAILS, COLUMN_FAILS = 250, 377


class NumberSpout(Spout):
    """Emits numbers in blocks, each until it is acked."""

    outputs = ("number", "key")
    columns = True

    def initialize(self, config: Mapping[str, Any], context: TopologyContext) -> None:
        """Starts with the first block."""
        self.out, self.context, self.form = config["out"], context, config["form"]
        self.waiting: list[Any] = list(range(0, config["numbers"], ROWS))
        self.acked: list[Any] = []
        self.failed: list[Any] = []

    def next_tuple(self) -> None:
        """Emits a block, or a number that failed."""
        if not self.waiting:
            self.end()
            return
        first = self.waiting.pop(0)
        numbers = list(range(first, first + ROWS)) if first % ROWS == 0 and first not in self.acked else [first]
        if self.form == "unit":
            self.emit_columns(block(numbers), first)
        elif self.form == "ids":
            self.emit_columns(block(numbers), ids=numbers)
        else:
            for number in numbers:
                self.emit([number, f"k{number % 7}"], number)

    def ack(self, tup_id: Any) -> None:  # noqa: ANN401  # the id may have any type
        """Notes it."""
        self.acked.append(tup_id)

    def fail(self, tup_id: Any) -> None:  # noqa: ANN401
        """Emits it again: the block, or the number."""
        self.failed.append(tup_id)
        if self.form != "unit" and tup_id % ROWS == 0:
            self.acked.append(tup_id)  # only this row of the block
        self.waiting.append(tup_id)

    def close(self) -> None:
        """Writes the outcomes."""
        write_result(self.out, self.context, [sorted(self.acked), sorted(self.failed)])


def block(numbers: list[int]) -> dict[str, pa.Array]:
    """The numbers with their keys."""
    return {"number": pa.array(numbers), "key": pa.array([f"k{each % 7}" for each in numbers]).dictionary_encode()}


class FailOnce(Bolt):
    """Fails its number once."""

    def initialize(self, config: Mapping[str, Any], context: TopologyContext) -> None:
        """Takes the folder."""
        self.out, self.context = config["out"], context

    def is_first(self, number: int) -> bool:
        """Whether no task has seen the number."""
        try:
            Path(self.out, f"seen-{number}").touch(exist_ok=False)
        except FileExistsError:
            return False
        return True


class RowBolt(FailOnce):
    """Passes rows on, some of them as columns."""

    outputs = ("number", "key")
    columns = True

    def process(self, tup: Tuple) -> None:
        """Emits under the tuple."""
        number, key = tup.values
        if number == ROW_FAILS and self.is_first(number):
            self.fail(tup)
            return
        if number % 2:
            self.emit([number, key], anchors=[tup])
        else:
            self.emit_columns(block([number]), anchors=[tup])
        self.ack(tup)


class ColumnBolt(FailOnce):
    """Passes batches on, some of them as rows."""

    outputs = ("number", "key")

    def process_columns(self, batch: pa.RecordBatch) -> None:
        """Emits under the batch."""
        numbers = batch.column("number").to_pylist()
        if COLUMN_FAILS in numbers and self.is_first(COLUMN_FAILS):
            msg = "the first time"
            raise ValueError(msg)
        if numbers[0] % 3:
            self.emit_columns(batch, anchors=[batch])
        else:
            for number, key in zip(numbers, batch.column("key").to_pylist(), strict=True):
                self.emit([number, key], anchors=[batch])
        self.ack(batch)

    def finish(self) -> None:
        """Says goodbye in columns; at least once, until it is acked."""
        self.emit_columns(block([-1 - self.context.get_task_index()]))


class RowCount(FailOnce):
    """Keeps every number, from rows."""

    def initialize(self, config: Mapping[str, Any], context: TopologyContext) -> None:
        """Starts with none."""
        super().initialize(config, context)
        self.rows: list[Any] = []

    def process(self, tup: Tuple) -> None:
        """Keeps a number and where it came from."""
        self.rows.append([tup.component, *tup.values])
        self.ack(tup)

    def finish(self) -> None:
        """Writes them."""
        write_result(self.out, self.context, self.rows)


class ColumnCount(RowCount):
    """Keeps every number, from columns."""

    def process_columns(self, batch: pa.RecordBatch) -> None:
        """Keeps the numbers of a batch."""
        component, stream, task = self.received_from
        assert stream == "default"
        assert task in self.context.get_component_tasks(component)
        self.rows += [[component, each["number"], each["key"]] for each in batch.to_pylist()]
        self.ack(batch)


if __name__ == "__main__":
    options = arguments(form="unit", mode="ATLEAST_ONCE", numbers=2_000)
    builder = TopologyBuilder("mixed_columns")
    builder.set_config(
        {
            api_constants.TOPOLOGY_STMGRS: 2,
            api_constants.TOPOLOGY_RELIABILITY_MODE: options.mode,
            "out": options.out,
            "form": options.form,
            "numbers": options.numbers,
        }
    )
    numbers = builder.add_spout("numbers", NumberSpout, par=1)
    rows = builder.add_bolt("rows", RowBolt, par=2, inputs={numbers: Grouping.SHUFFLE})
    columns = builder.add_bolt("columns", ColumnBolt, par=2, inputs={numbers: Grouping.fields("key")})
    both = {rows: Grouping.fields("key"), columns: Grouping.PARTIAL_KEY("key")}
    builder.add_bolt("row_count", RowCount, par=2, inputs=both)
    builder.add_bolt("column_count", ColumnCount, par=2, inputs=both)
    builder.build_and_submit()
