"""Kafka topics as sources and sinks of pipelines."""

from heron_connector_kafka.record import NewRecord, Record
from heron_connector_kafka.sink import KafkaSink, Transactions
from heron_connector_kafka.source import KafkaSource

__all__ = ["KafkaSink", "KafkaSource", "NewRecord", "Record", "Transactions"]
