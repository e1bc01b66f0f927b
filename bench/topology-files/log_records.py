"""The records of a topic or log counted by key and window, or texts written to one: at least once, with checkpoints.

The first records and the end are noted as files ``begin`` and ``end``, with the time and the number of records.
"""

from __future__ import annotations

import sys
import time
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, TypeVar, cast

import pyarrow as pa
import pyarrow.compute as pc
from pipeline_forms import Ending, note

from heron.api import TopologyBuilder
from heron_connector_dlog import DlogSink, DlogSource, LogNamespace
from heron_connector_dlog.column_sink import DlogColumnSink
from heron_connector_dlog.columns import DlogColumns
from heron_connector_kafka import KafkaSink, KafkaSource
from heron_connector_kafka.column_sink import KafkaColumnSink
from heron_connector_kafka.columns import KafkaColumns
from heron_streamlet import Builder, Config, Items, Reader, Source, StageContext, TransactionalSink, tumbling_window
from heron_streamlet.topology.topology_compiler import compile_topology

INTERVAL_S = 5.0
"""Between checkpoints: what Kafka's own consumers use for their offsets."""
WINDOW_S = 5.0
PER_S = 100_000
"""Records of a log per second of event time: its transaction ids count them."""
KEY_BYTES = 2
"""The end of a value, which is the key of a record of a log."""
LOOK_S = 0.02
ROWS = 4096  # as `to_columns` gathers
ONE_COPY = {"bkcEnsembleSize": 1, "bkcWriteQuorumSize": 1, "bkcAckQuorumSize": 1}

T = TypeVar("T")


class Noted(Source[T]):
    """Notes when the first records are there. With `waits`, it begins when a `NotedSink` is ready."""

    def __init__(self, source: Source[T], folder: str, *, waits: bool = False) -> None:
        self.source, self.folder, self.waits = source, folder, waits

    def partitions(self, tasks: int) -> Sequence[str]:
        return self.source.partitions(tasks)

    def open(self, partition: str, position: object, context: StageContext) -> Reader[T]:
        while self.waits and not Path(self.folder, "ready").exists():
            time.sleep(LOOK_S)
        reader: Any = self.source.open(partition, position, context)
        read_records = reader.read

        def read(limit: int) -> Sequence[T] | None:
            found: Sequence[T] | None = read_records(limit)
            if found:
                note(self.folder, "begin", len(found))
                reader.read = read_records
            return found

        reader.read = read
        return cast("Reader[T]", reader)


class NotedSink(TransactionalSink[T]):
    """Writes an element before the clock starts, and notes when the cluster has all of them."""

    def __init__(self, sink: TransactionalSink[T], first: T, folder: str) -> None:
        self.sink, self.first, self.folder = sink, first, folder

    def setup(self, context: StageContext) -> None:
        self.sink.setup(context)
        self.sink.put(self.first)
        self.sink.prepare(0)
        note(self.folder, "ready", 1)
        self.put = self.sink.put  # type: ignore[method-assign]  # a call less

    def put(self, element: T) -> None:
        self.sink.put(element)

    def prepare(self, checkpoint: int) -> None:
        self.sink.prepare(checkpoint)
        note(self.folder, "end", checkpoint)

    def commit(self, checkpoint: int) -> None:
        self.sink.commit(checkpoint)

    def restore(self, checkpoint: int) -> None:
        self.sink.restore(checkpoint)

    def close(self) -> None:
        self.sink.close()


class Total(Ending):
    """Notes how many records the counts stand for."""

    def put(self, element: tuple[Any, int]) -> None:
        self.count += element[1]


def value_of(number: int) -> bytes:
    return b"%0100d" % number


def batches_of(records: int) -> Iterator[pa.RecordBatch]:
    for begin in range(0, records, ROWS):
        yield batch_of([value_of(number) for number in range(begin, min(begin + ROWS, records))])


def batch_of(values: Sequence[bytes]) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict({"data": values})


def keys_of(batch: pa.RecordBatch) -> pa.RecordBatch:
    """What is counted, and not the data, which would go to another task."""
    keys = pc.binary_slice(batch.column("data"), -KEY_BYTES)
    return pa.RecordBatch.from_pydict({"key": keys, "transaction_id": batch.column("transaction_id")})


def seconds_of(batch: pa.RecordBatch) -> pa.Array:
    return pc.divide(pc.cast(batch.column("transaction_id"), pa.float64()), PER_S)


def log_namespace(address: str) -> LogNamespace:
    uri, _, jars = address.partition(",")
    return LogNamespace(uri, jars, ONE_COPY)


def write_records(builder: Builder, chosen: Namespace, sinks: Mapping[str, Callable[[], Any]]) -> None:
    sink, folder = sinks[chosen.form](), chosen.folder
    if chosen.form == "columns":
        batches = Noted(Items(partial(batches_of, chosen.records)), folder, waits=True)
        builder.new_columns(batches).to_sink(NotedSink(sink, batch_of([value_of(0)]), folder))
    else:
        numbers = Noted(Items(range(chosen.records)), folder, waits=True)
        builder.new_source(numbers).map(value_of).to_sink(NotedSink(sink, value_of(0), folder))


def count_kafka(builder: Builder, chosen: Namespace) -> Any:  # noqa: ANN401  # of records or columns
    source = KafkaSource(chosen.address, chosen.name, until="latest")
    if chosen.form == "columns":
        columns = KafkaColumns(source, columns=("key", "timestamp"))
        rows = builder.new_columns(Noted(columns, chosen.folder)).event_time("timestamp")
        return rows.count_by_key_and_window("key", tumbling_window(WINDOW_S))
    records = builder.new_source(Noted(source, chosen.folder)).event_time(lambda record: record.timestamp_s)
    return records.key_by(lambda record: record.key).count_by_key_and_window(tumbling_window(WINDOW_S))


def count_dlog(builder: Builder, chosen: Namespace) -> Any:  # noqa: ANN401  # of records or columns
    source = DlogSource(log_namespace(chosen.address), chosen.name, until="latest")
    if chosen.form == "columns":
        columns = DlogColumns(source, columns=("data", "transaction_id"))
        rows = builder.new_columns(Noted(columns, chosen.folder)).map_columns(keys_of)
        return rows.event_time(seconds_of).count_by_key_and_window("key", tumbling_window(WINDOW_S))
    records = builder.new_source(Noted(source, chosen.folder))
    timed = records.event_time(lambda record: record.transaction_id / PER_S)
    return timed.key_by(lambda record: record.data[-KEY_BYTES:]).count_by_key_and_window(tumbling_window(WINDOW_S))


def topology(arguments: Sequence[str]) -> TopologyBuilder:
    parser = ArgumentParser()
    parser.add_argument("--folder", required=True, help="folder of the notes")
    parser.add_argument("--form", choices=("records", "columns"), default="records")
    parser.add_argument("--way", choices=("in", "out"), required=True)
    parser.add_argument("--records", type=int, default=0, help="how many to write")
    parser.add_argument("system", choices=("kafka", "dlog"))
    parser.add_argument("address")
    parser.add_argument("name")
    chosen = parser.parse_args(arguments)
    builder, address, name = Builder(), chosen.address, chosen.name
    if chosen.way == "in":
        counts = {"kafka": count_kafka, "dlog": count_dlog}[chosen.system](builder, chosen)
        counts.repartition(1).to_sink(Total(chosen.folder))
    elif chosen.system == "kafka":
        to_topic: dict[str, Callable[[], Any]] = {
            "records": lambda: KafkaSink(address, name),
            "columns": lambda: KafkaColumnSink(address, name, value="data"),
        }
        write_records(builder, chosen, to_topic)
    else:
        stream = name.removesuffix("-0")  # of task 0
        to_log: dict[str, Callable[[], Any]] = {
            "records": lambda: DlogSink(log_namespace(address), stream),
            "columns": lambda: DlogColumnSink(log_namespace(address), stream),
        }
        write_records(builder, chosen, to_log)
    config = Config().set_delivery_semantics(Config.ATLEAST_ONCE)
    more = {"topology.stateful.checkpoint.interval.seconds": INTERVAL_S}
    return compile_topology("log_records", builder.graph(), {**config.values(), **more})


if __name__ == "__main__":
    topology(sys.argv[1:]).build_and_submit()
