"""DistributedLog streams as sources and sinks of pipelines."""

from heron_connector_dlog.errors import ClientDiedError, FencedError, LogMissingError, TruncatedError
from heron_connector_dlog.log_namespace import LogNamespace
from heron_connector_dlog.record import Record
from heron_connector_dlog.sink import DlogSink
from heron_connector_dlog.source import DlogSource

__all__ = [
    "ClientDiedError",
    "DlogSink",
    "DlogSource",
    "FencedError",
    "LogMissingError",
    "LogNamespace",
    "Record",
    "TruncatedError",
]
