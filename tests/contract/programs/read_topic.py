"""Reads a Kafka topic. The value of a record is the text."""

from __future__ import annotations

from heron_connector_kafka import KafkaSource
from heron_testing.connectors.programs import read_source

if __name__ == "__main__":
    read_source(
        lambda given: KafkaSource(given["servers"], given["topic"]), lambda record: (record.value or b"").decode()
    )
