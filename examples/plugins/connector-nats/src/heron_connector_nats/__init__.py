"""Streams of NATS JetStream as sources and sinks of pipelines."""

from heron_connector_nats.sink import NatsSink
from heron_connector_nats.source import NatsMessage, NatsSource

__all__ = ["NatsMessage", "NatsSink", "NatsSource"]
