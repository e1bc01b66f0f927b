"""Counts by key in windows of ten seconds, from a Kafka topic to another one. A value is ``TIME KEY``."""

from __future__ import annotations

import argparse

from heron_connector_kafka import KafkaSink, KafkaSource, Transactions
from heron_streamlet import Builder, Config, KeyedWindow, Runner, tumbling_window

parser = argparse.ArgumentParser()
for name in ("servers", "source", "target", "staging"):
    parser.add_argument(f"--{name}", required=True)
parser.add_argument("--until")
parser.add_argument("--out")  # of every run; not used


def text(result: tuple[KeyedWindow[str], int]) -> str:
    """The value of a result."""
    window, count = result
    return f"{window.window.start_time:g} {window.key} {count}"


if __name__ == "__main__":
    given = parser.parse_args()
    builder = Builder()
    records = builder.new_source(KafkaSource(given.servers, given.source, until=given.until))
    records.set_num_partitions(2).set_name("records")
    words = records.map(lambda record: (record.value or b"").decode().split())
    pairs = words.event_time(lambda word: float(word[0]), lag=2).key_by(lambda word: word[1])
    counts = pairs.count_by_key_and_window(tumbling_window(10)).set_num_partitions(2).set_name("counts")
    counts.to_sink(
        KafkaSink(
            given.servers,
            given.target,
            key=lambda result: result[0].key,
            value=text,
            transactions=Transactions("counts", given.staging),
        )
    )
    config = Config({"topology.stateful.checkpoint.interval.seconds": 0.5})
    config.set_delivery_semantics(Config.EFFECTIVELY_ONCE).set_num_containers(2)
    Runner().run("kafka_counts", config, builder)
