"""The records of a topic counted by key and window, or texts written to a topic: at least once, with checkpoints.

With ``--form columns`` records are counted in columns, and texts reach the task of the sink in columns.

The first records and the end are noted as files ``begin`` and ``end``, with the time and the number of records.
"""

from __future__ import annotations

import sys
from argparse import ArgumentParser
from collections.abc import Iterator, Sequence
from functools import partial
from operator import itemgetter
from typing import Any, TypeVar, cast

from pipeline_forms import Ending, note

from heron.api import TopologyBuilder
from heron_connector_kafka import KafkaSink, KafkaSource
from heron_connector_kafka.columns import KafkaColumns
from heron_streamlet import Builder, Config, Items, Reader, Source, StageContext, tumbling_window
from heron_streamlet.topology.topology_compiler import compile_topology

INTERVAL_S = 5.0
"""Between checkpoints: what Kafka's own consumers use for their offsets."""
WINDOW_S = 5.0
ROWS = 4096  # as `to_columns` gathers

T = TypeVar("T")


class Noted(Source[T]):
    """Notes when the first records are there."""

    def __init__(self, source: Source[T], folder: str) -> None:
        self.source, self.folder = source, folder

    def partitions(self, tasks: int) -> Sequence[str]:
        return self.source.partitions(tasks)

    def open(self, partition: str, position: object, context: StageContext) -> Reader[T]:
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


class NotedSink(KafkaSink[bytes]):
    """Notes when the first record comes, and when the cluster has all of them."""

    folder = ""
    count = 0

    def put(self, element: bytes) -> None:
        if not self.count:
            note(self.folder, "begin", 1)
        super().put(element)
        self.count += 1

    def prepare(self, checkpoint: int) -> None:
        super().prepare(checkpoint)
        note(self.folder, "end", self.count)


class Total(Ending):
    """Notes how many records the counts stand for."""

    def put(self, element: tuple[Any, int]) -> None:
        self.count += element[1]


def value_of(number: int) -> bytes:
    return b"%0100d" % number


def batches_of(records: int) -> Iterator[dict[str, list[bytes]]]:
    for begin in range(0, records, ROWS):
        yield {"value": [value_of(number) for number in range(begin, min(begin + ROWS, records))]}


def topology(arguments: Sequence[str]) -> TopologyBuilder:
    parser = ArgumentParser()
    parser.add_argument("--folder", required=True, help="folder of the notes")
    parser.add_argument("--servers", required=True)
    parser.add_argument("--topic", required=True)
    parser.add_argument("--form", choices=("records", "columns"), default="records")
    parser.add_argument("--records", type=int, default=0, help="how many to write; 0 to read what the topic has")
    chosen = parser.parse_args(arguments)
    builder = Builder()
    if chosen.records:
        if chosen.form == "columns":
            batches = builder.new_columns(Items(partial(batches_of, chosen.records)))
            values: Any = batches.repartition(1).rows().map(itemgetter("value"))  # behind it, in the task of the sink
        else:
            values = builder.new_source(Items(range(chosen.records))).map(value_of)
        sink = NotedSink(chosen.servers, chosen.topic)
        sink.folder = chosen.folder
        values.to_sink(sink)
    else:
        source = KafkaSource(chosen.servers, chosen.topic, until="latest")
        window = tumbling_window(WINDOW_S)
        if chosen.form == "columns":
            columns = KafkaColumns(source, columns=("key", "timestamp"))
            rows = builder.new_columns(Noted(columns, chosen.folder)).event_time("timestamp")
            counts: Any = rows.count_by_key_and_window("key", window)
        else:
            timed = builder.new_source(Noted(source, chosen.folder)).event_time(lambda record: record.timestamp_s)
            counts = timed.key_by(lambda record: record.key).count_by_key_and_window(window)
        counts.repartition(1).to_sink(Total(chosen.folder))
    config = Config().set_delivery_semantics(Config.ATLEAST_ONCE)
    more = {"topology.stateful.checkpoint.interval.seconds": INTERVAL_S}
    return compile_topology("kafka_records", builder.graph(), {**config.values(), **more})


if __name__ == "__main__":
    topology(sys.argv[1:]).build_and_submit()
