"""From a Delta table to two others: each row, and counts by key in windows of ten seconds.

Each file of the table stops in its middle until there is a file ``go`` among the results.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
from recording import arguments

from heron_connector_delta import DeltaSink, DeltaSource
from heron_streamlet import Builder, Config, KeyedWindow, Reader, Runner, StageContext, tumbling_window

BATCHES, ROWS = 10, 50  # of each file
COUNTS = pa.schema([("start", pa.int64()), ("key", pa.string()), ("count", pa.int64())])


class GatedTable(DeltaSource):
    """A table whose files are read to their middle until the gate, a file, is there."""

    gate = Path()

    def open(self, partition: str, position: object, context: StageContext) -> Reader[pa.RecordBatch]:
        """`Source.open`."""
        return GatedReader(super().open(partition, position, context), self.gate)


class GatedReader:
    """A reader that has nothing now while the gate is shut."""

    def __init__(self, reader: Reader[pa.RecordBatch], gate: Path) -> None:
        self._reader, self._gate = reader, gate

    @property
    def position(self) -> object:
        """`Reader.position`."""
        return self._reader.position

    def read(self, limit: int) -> Sequence[pa.RecordBatch] | None:
        """`Reader.read`."""
        if self.position == (0, BATCHES // 2) and not self._gate.exists():
            return ()
        return self._reader.read(limit)

    def close(self) -> None:
        """`Reader.close`."""
        self._reader.close()


def row(result: tuple[KeyedWindow[str], int]) -> dict[str, object]:
    """A row of the counts."""
    place, count = result
    return {"start": int(place.window.start_time), "key": place.key, "count": count}


def pipeline(table: Path, out: Path, gate: Path | None) -> Builder:
    """The pipeline."""
    builder = Builder()
    source = DeltaSource(table, rows=ROWS)
    if gate is not None:
        source = GatedTable(table, rows=ROWS)
        source.gate = gate
    rows = builder.new_columns(source).set_num_partitions(2).set_name("visits")
    copies = rows.repartition(2).set_name("copies")
    copies.to_sink(DeltaSink(out / "copies", id="copies", folder=out / "staged", schema=VISITS))
    counts = rows.event_time("time", lag=1000).count_by_key_and_window("key", tumbling_window(10)).map(row)
    counts.set_num_partitions(2).set_name("counts")
    sink = DeltaSink(out / "counts", id="counts", folder=out / "staged", schema=COUNTS, partition_by=["key"])
    counts.to_sink(sink)
    return builder


VISITS = pa.schema([("time", pa.float64()), ("key", pa.string()), ("day", pa.int64())])

if __name__ == "__main__":
    options = arguments(table="")
    config = Config({"topology.stateful.checkpoint.interval.seconds": 0.5})
    config.set_delivery_semantics(Config.EFFECTIVELY_ONCE).set_num_containers(2)
    results = Path(options.out)
    Runner().run("delta_counts", config, pipeline(Path(options.table), results, results / "go"))
