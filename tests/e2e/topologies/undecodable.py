"""Spouts that emit 3,000 values each, one of which does not decode at its receivers; one spout for each reason.

Each value goes to two tasks of a bolt of rows and to two tasks of a bolt of columns, within the container and beyond.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Mapping
from types import ModuleType
from typing import Any

import pyarrow as pa
from recording import arguments, write_result

from heron.api import Bolt, Grouping, Spout, TopologyBuilder, TopologyContext, Tuple, api_constants

VALUES = 3000
BAD = 1234
A_BLOCK = 100
MOST_DAYS = 2_932_896  # the last date that Python has


class TwoArgumentsError(Exception):
    """Pickles with one argument of two."""

    def __init__(self, code: int, text: str) -> None:
        super().__init__(text)
        self.code = code


class Stubborn:
    """Refuses its state."""

    def __init__(self) -> None:
        self.left = 1

    def __setstate__(self, state: object) -> None:
        """Refuses."""
        raise LookupError("no such state")  # noqa: EM101


def of_this_process() -> object:
    """An instance of a class that only the calling process has."""
    module = sys.modules["lacking"] = ModuleType("lacking")
    module.Thing = type("Thing", (), {"__module__": "lacking"})  # type: ignore[attr-defined]
    return module.Thing()


class ValueSpout(Spout):
    """Emits numbers with values; counts outcomes."""

    outputs = ("number", "value")

    def bad(self) -> object:
        """The value that does not decode."""
        raise NotImplementedError

    def initialize(self, config: Mapping[str, Any], context: TopologyContext) -> None:
        """Starts at zero."""
        self.out, self.context = config["out"], context
        self.number = self.acked = 0
        self.failed: list[Any] = []

    def next_tuple(self) -> None:
        """Emits a value."""
        if self.number == VALUES:
            self.end()
            return
        value = self.bad() if self.number == BAD else f"v{self.number}"
        self.emit([self.number, value], tup_id=self.number)
        self.number += 1

    def ack(self, tup_id: Any) -> None:  # noqa: ANN401  # the id may have any type
        """Counts it."""
        self.acked += 1

    def fail(self, tup_id: Any) -> None:  # noqa: ANN401
        """Notes it, and does not emit it again."""
        self.failed.append(tup_id)

    def close(self) -> None:
        """Writes the outcomes."""
        write_result(self.out, self.context, [self.acked, self.failed])


class ArgumentsSpout(ValueSpout):
    """An exception class whose constructor has two arguments."""

    def bad(self) -> object:
        """Its instance."""
        return TwoArgumentsError(7, "seven")


class LackingSpout(ValueSpout):
    """A class that the receiver lacks."""

    def bad(self) -> object:
        """Its instance."""
        return of_this_process()


class InsideSpout(ValueSpout):
    """An object that refuses its state, inside plain data."""

    def bad(self) -> object:
        """A dict with a list with it."""
        return {"parts": [1, Stubborn()]}


class ColumnSpout(ValueSpout):
    """A date that Python does not have, in columns; bolts of columns read it."""

    columns = True

    def next_tuple(self) -> None:
        """Emits a block."""
        if self.number == VALUES:
            self.end()
            return
        numbers = list(range(self.number, self.number + A_BLOCK))
        days = pa.array([MOST_DAYS + 1 if each == BAD else each for each in numbers], pa.int32())
        self.emit_columns({"number": pa.array(numbers), "value": days.cast(pa.date32())}, ids=numbers)
        self.number += A_BLOCK


class RowBolt(Bolt):
    """Counts rows by source."""

    def initialize(self, config: Mapping[str, Any], context: TopologyContext) -> None:
        """Starts with none."""
        self.out, self.context = config["out"], context
        self.counts: Counter[str] = Counter()
        self.numbers: Counter[str] = Counter()

    def process(self, tup: Tuple) -> None:
        """Counts a row."""
        self.counts[tup.component] += 1
        self.numbers[tup.component] += tup.values[0]
        self.ack(tup)

    def finish(self) -> None:
        """Writes the count and the sum of numbers of each source."""
        write_result(self.out, self.context, [[name, self.counts[name], self.numbers[name]] for name in self.counts])


class BatchBolt(RowBolt):
    """Counts rows of columns by source."""

    def process_columns(self, batch: pa.RecordBatch) -> None:
        """Counts a batch."""
        component, _, _ = self.received_from
        self.counts[component] += batch.num_rows
        self.numbers[component] += sum(batch.column(0).to_pylist())
        self.ack(batch)


if __name__ == "__main__":
    options = arguments(mode="ATLEAST_ONCE")
    builder = TopologyBuilder("undecodable")
    builder.set_config(
        {
            api_constants.TOPOLOGY_STMGRS: 2,
            api_constants.TOPOLOGY_RELIABILITY_MODE: options.mode,
            "out": options.out,
        }
    )
    spouts = [
        builder.add_spout(name, kind, par=1)
        for name, kind in (("arguments", ArgumentsSpout), ("lacking", LackingSpout), ("inside", InsideSpout))
    ]
    columns = builder.add_spout("columns", ColumnSpout, par=1)
    builder.add_bolt("rows", RowBolt, par=2, inputs=dict.fromkeys((*spouts, columns), Grouping.ALL))
    builder.add_bolt("batches", BatchBolt, par=2, inputs=dict.fromkeys(spouts, Grouping.ALL))
    builder.build_and_submit()
