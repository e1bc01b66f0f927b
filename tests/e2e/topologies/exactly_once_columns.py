"""The topology ``exactly_once`` in columns: batches of numbers, counted in keyed state, committed from rows."""

from __future__ import annotations

import select

import pyarrow as pa
from exactly_once import CommitBolt, CountBolt, PartitionSpout
from recording import arguments

from heron.api import Grouping, TopologyBuilder, api_constants


class ColumnPartitionSpout(PartitionSpout):
    """Emits the next number of each of its partitions as one batch."""

    columns = True

    def next_tuple(self) -> None:
        """Emits a batch; looks for the file now and then."""
        self.calls += 1
        if self.calls % 5 == 0 and self.stop.exists():
            self.end()
            return
        select.select([], [], [], 0.1)
        if self.partitions:
            numbers = [self.positions.add(each) - 1 for each in self.partitions]
            self.emit_columns({"partition": pa.array(self.partitions), "number": pa.array(numbers)})


class ColumnCountBolt(CountBolt):
    """Counts the numbers of a batch in the order of its rows."""

    def process_columns(self, batch: pa.RecordBatch) -> None:
        """Emits the batch with a column of counts."""
        counts = [self.counts.add(partition) for partition in batch.column("partition").to_pylist()]
        self.emit_columns(batch.append_column("count", pa.array(counts)))


if __name__ == "__main__":
    options = arguments(interval=0.5)
    modes = api_constants.TopologyReliabilityMode
    builder = TopologyBuilder("exactly_once")
    builder.set_config(
        {
            "out": options.out,
            api_constants.TOPOLOGY_RELIABILITY_MODE: modes.EFFECTIVELY_ONCE,
            api_constants.TOPOLOGY_STATEFUL_CHECKPOINT_INTERVAL_SECONDS: options.interval,
            api_constants.TOPOLOGY_STMGRS: 2,
        }
    )
    read = builder.add_spout("read", ColumnPartitionSpout, par=2)
    by_partition = Grouping.fields("partition")
    count = builder.add_bolt("count", ColumnCountBolt, par=2, inputs={read: by_partition})
    builder.add_bolt("commit", CommitBolt, par=2, inputs={count: by_partition})
    builder.build_and_submit()
