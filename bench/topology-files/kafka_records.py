"""The records of a topic counted by key, or texts written to a topic, as pipelines: at least once, with checkpoints.

The first records and the end are noted as files ``begin`` and ``end``, with the time and the number of records.
"""

from __future__ import annotations

import sys
from argparse import ArgumentParser
from collections.abc import Sequence
from typing import Any, cast

from pipeline_forms import Ending, note

from heron.api import TopologyBuilder
from heron_connector_kafka import KafkaSink, KafkaSource, Record
from heron_streamlet import Builder, Config, Items, Reader, StageContext
from heron_streamlet.topology.topology_compiler import compile_topology

INTERVAL_S = 5.0
"""Between checkpoints: what Kafka's own consumers use for their offsets."""


class NotedSource(KafkaSource):
    """Notes when the first records are there."""

    folder = ""

    def open(self, partition: str, position: object, context: StageContext) -> Reader[Record]:
        reader: Any = super().open(partition, position, context)
        read_records = reader.read

        def read(limit: int) -> Sequence[Record] | None:
            found: Sequence[Record] | None = read_records(limit)
            if found:
                note(self.folder, "begin", len(found))
                reader.read = read_records
            return found

        reader.read = read
        return cast("Reader[Record]", reader)


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
    """Notes how many records the last counts stand for."""

    def __init__(self, folder: str) -> None:
        super().__init__(folder)
        self.counts: dict[Any, int] = {}

    def put(self, element: tuple[Any, int]) -> None:
        key, self.counts[key] = element
        self.count = sum(self.counts.values())


def value_of(number: int) -> bytes:
    return b"%0100d" % number


def topology(arguments: Sequence[str]) -> TopologyBuilder:
    parser = ArgumentParser()
    parser.add_argument("--folder", required=True, help="folder of the notes")
    parser.add_argument("--servers", required=True)
    parser.add_argument("--topic", required=True)
    parser.add_argument("--records", type=int, default=0, help="how many to write; 0 to read what the topic has")
    chosen = parser.parse_args(arguments)
    builder = Builder()
    if chosen.records:
        sink = NotedSink(chosen.servers, chosen.topic)
        sink.folder = chosen.folder
        builder.new_source(Items(range(chosen.records))).map(value_of).to_sink(sink)
    else:
        source = NotedSource(chosen.servers, chosen.topic, until="latest")
        source.folder = chosen.folder
        counts = builder.new_source(source).key_by(lambda record: record.key).count_by_key()
        counts.repartition(1).to_sink(Total(chosen.folder))
    config = Config().set_delivery_semantics(Config.ATLEAST_ONCE)
    more = {"topology.stateful.checkpoint.interval.seconds": INTERVAL_S}
    return compile_topology("kafka_records", builder.graph(), {**config.values(), **more})


if __name__ == "__main__":
    topology(sys.argv[1:]).build_and_submit()
