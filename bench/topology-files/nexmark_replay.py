"""A query of Nexmark whose source replays a block of events that was made before, each time later.

It needs the folder of the examples on its path. Each source partition notes its first read as a file ``begin-PART``,
and each task of the sink its end as ``end-TASK``, with the time and the number of results.
"""

from __future__ import annotations

import pickle
import sys
import time
from argparse import ArgumentParser
from collections.abc import Sequence
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

from heron.api import TopologyBuilder
from heron_streamlet import Builder, Reader, Source, StageContext, TransactionalSink
from heron_streamlet.topology.topology_compiler import compile_topology

BLOCK = 100_000
"""Events: ten seconds of event time, so windows of ten seconds contain a block."""
BLOCK_MS = 10_000
PARTS = 2
_BATCH = 10_000  # rows of a batch of columns: those of 2 MB stay in the caches of a processor


def write_blocks(folder: Path) -> None:
    """Make the events of each part, as rows and as columns."""
    events, columns = import_module("nexmark_events"), import_module("nexmark_columns")
    for part in range(PARTS):
        rows = [events.event(number) for number in range(part, BLOCK, PARTS)]
        steps = range(part, BLOCK, _BATCH * PARTS)
        batches = [columns.events_between(begin, min(begin + _BATCH * PARTS, BLOCK), PARTS) for begin in steps]
        for name, block in (("rows", rows), ("columns", batches)):
            (folder / f"{name}-{part}.pickle").write_bytes(pickle.dumps(block))


@cache
def block_of(path: str) -> list[Any]:
    """The events, or batches, of a file that `write_blocks` wrote."""
    found: list[Any] = pickle.loads(Path(path).read_bytes())  # noqa: S301  # our own file
    return found


def later_event(event: Any, later_ms: int) -> Any:  # noqa: ANN401  # a tuple of some kind
    kind = type(event)
    if len(event) == 5:
        auction, bidder, price, time_ms, extra = event
        return kind(auction, bidder, price, time_ms + later_ms, extra)
    if len(event) == 10:
        return event._replace(time=event.time + later_ms, expires=event.expires + later_ms)
    return event._replace(time=event.time + later_ms)


def later_batch(batch: Any, later_ms: int) -> Any:  # noqa: ANN401  # pyarrow has no types
    import pyarrow as pa  # noqa: PLC0415  # rows need no pyarrow

    columns = [_later_times(column, later_ms) for column in batch.columns]
    return pa.RecordBatch.from_arrays(columns, schema=batch.schema)


def _later_times(column: Any, later_ms: int) -> Any:  # noqa: ANN401  # pyarrow has no types
    import pyarrow as pa  # noqa: PLC0415
    import pyarrow.compute as pc  # noqa: PLC0415

    if pa.types.is_timestamp(column.type):
        later = pc.add(column.view(pa.int64()), later_ms)
        return later.view(column.type)
    if pa.types.is_struct(column.type):
        nulls = column.is_null() if column.null_count else None
        inner = [_later_times(column.field(index), later_ms) for index in range(column.type.num_fields)]
        return pa.StructArray.from_arrays(inner, fields=list(column.type), mask=nulls)
    return column


class Replay(Source[Any]):
    """Rounds of the block: rows, or batches of columns. `folder` has the blocks; notes go to `notes`."""

    def __init__(self, folder: str, rounds: int, form: str, notes: str | None) -> None:
        self.folder, self.rounds, self.form, self.notes = folder, rounds, form, notes

    def partitions(self, tasks: int) -> Sequence[str]:
        del tasks
        return [str(part) for part in range(PARTS)]

    def open(self, partition: str, position: object, context: StageContext) -> Reader[Any]:
        del context
        block = block_of(str(Path(self.folder, f"{self.form}-{partition}.pickle")))
        if self.notes is not None:
            note(self.notes, f"begin-{partition}", 0)
        return ReplayReader(block, self.rounds, position if isinstance(position, int) else 0, self.form)


class ReplayReader:
    """Reads one part."""

    def __init__(self, block: list[Any], rounds: int, position: int, form: str) -> None:
        self._block, self._rounds, self.position = block, rounds, position
        self._later = later_event if form == "rows" else later_batch

    def read(self, limit: int) -> Sequence[Any] | None:
        turn, place = divmod(self.position, len(self._block))
        if turn >= self._rounds:
            return None
        found = self._block[place : place + (limit if self._later is later_event else 1)]
        self.position += len(found)
        later, later_ms = self._later, turn * BLOCK_MS
        return [later(each, later_ms) for each in found]

    def close(self) -> None:
        pass


def note(folder: str, name: str, count: int) -> None:
    Path(folder, name).write_text(f"{time.monotonic()} {count}", encoding="utf-8")


class Ending(TransactionalSink[Any]):
    """Counts results, and notes the end of the task."""

    def __init__(self, folder: str) -> None:
        self.folder, self.count, self.task = folder, 0, 0

    def setup(self, context: StageContext) -> None:
        self.task = context.partition

    def put(self, element: Any) -> None:  # noqa: ANN401  # a result, or columns of results
        self.count += getattr(element, "num_rows", 1)

    def prepare(self, checkpoint: int) -> None:
        note(self.folder, f"end-{self.task}", self.count)

    def commit(self, checkpoint: int) -> None:
        pass

    def restore(self, checkpoint: int) -> None:
        pass


def results_of(query: str, builder: Builder, source: Replay) -> Any:  # noqa: ANN401  # streams of several types
    """The results of a query of the examples on this source."""
    if source.form == "columns":
        read = builder.new_columns(source).set_num_partitions(PARTS)
        return import_module("nexmark_columns").COLUMN_QUERIES[query](read)
    return import_module("nexmark_rows").QUERIES[query](builder.new_source(source).set_num_partitions(PARTS), PARTS)


def topology(arguments: Sequence[str]) -> TopologyBuilder:
    parser = ArgumentParser()
    parser.add_argument("--folder", required=True, help="folder of the notes")
    parser.add_argument("--blocks", required=True, help="folder of the blocks")
    parser.add_argument("--query", default="q0")
    parser.add_argument("--form", choices=("rows", "columns"), default="rows")
    parser.add_argument("--rounds", type=int, default=10)
    chosen = parser.parse_args(arguments)
    builder = Builder()
    results = results_of(chosen.query, builder, Replay(chosen.blocks, chosen.rounds, chosen.form, chosen.folder))
    results.to_sink(Ending(chosen.folder))
    return compile_topology(f"nexmark_{chosen.query}", builder.graph(), vars(chosen))


if __name__ == "__main__":
    topology(sys.argv[1:]).build_and_submit()
