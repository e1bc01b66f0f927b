"""Delta tables as sources and sinks of pipelines."""

from heron_connector_delta.sink import DeltaSink
from heron_connector_delta.source import DeltaSource

__all__ = ["DeltaSink", "DeltaSource"]
