"""Counts of pages by the time of Kafka's records, whose values are Avro with a schema in a registry.

A step behind the decoding is slow until there is a file ``go`` in the staging folder. A value that is not Avro is a
dead letter.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

from heron_connector_kafka import KafkaSink, KafkaSource, NewRecord, Record, Transactions
from heron_connector_kafka.avro import AvroDecoder
from heron_connector_kafka.schema_registry import SchemaRegistry
from heron_streamlet import Builder, Config, KeyedWindow, Runner, tumbling_window

parser = argparse.ArgumentParser()
for name in ("servers", "source", "target", "staging", "registry"):
    parser.add_argument(f"--{name}", required=True)
parser.add_argument("--out")  # of every run; not used
given = parser.parse_args()
decode = AvroDecoder(SchemaRegistry(given.registry))


def page(record: Record) -> tuple[float, str]:
    """Time and page of a record."""
    return record.timestamp_s, decode(record.value)["page"]


def wait(element: tuple[float, str]) -> tuple[float, str]:
    """The element, late until the file is there."""
    if not Path(given.staging, "go").exists():
        time.sleep(0.05)  # so that there is a backlog; a step that blocks would hold the metrics up, too
    return element


def counted(result: tuple[KeyedWindow[str], int]) -> NewRecord:
    """The count, with the begin of its window as its time."""
    window, count = result
    return NewRecord(str(count), window.key, (("kind", "count"),), window.window.start_time)


if __name__ == "__main__":
    builder = Builder()
    records = builder.new_source(KafkaSource(given.servers, given.source)).set_name("records")
    pages = records.map(page).set_name("decoded").on_error("dead_letter").map(wait)
    counts = pages.event_time(lambda each: each[0]).key_by(lambda each: each[1])
    sink = KafkaSink[tuple[KeyedWindow[str], int]](
        given.servers, given.target, value=counted, transactions=Transactions("pages", given.staging)
    )
    counts.count_by_key_and_window(tumbling_window(10)).to_sink(sink)
    config = Config({"topology.stateful.checkpoint.interval.seconds": 0.5})
    Runner().run("kafka_pages", config.set_delivery_semantics(Config.EFFECTIVELY_ONCE), builder)
