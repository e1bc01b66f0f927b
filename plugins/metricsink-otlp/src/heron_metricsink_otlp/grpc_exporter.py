"""OTLP over gRPC."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import urlsplit

import grpc

from heron.errors import SinkError
from heron_metricsink_otlp.exporter import TIMEOUT_S, Exporter, RejectedError, Signal

__all__ = ["GrpcExporter"]

_METHODS = {
    Signal.METRICS: "/opentelemetry.proto.collector.metrics.v1.MetricsService/Export",
    Signal.EVENTS: "/opentelemetry.proto.collector.logs.v1.LogsService/Export",
    Signal.TRACES: "/opentelemetry.proto.collector.trace.v1.TraceService/Export",
}
_PASSING = frozenset(
    {
        grpc.StatusCode.ABORTED,
        grpc.StatusCode.CANCELLED,
        grpc.StatusCode.DATA_LOSS,
        grpc.StatusCode.DEADLINE_EXCEEDED,
        grpc.StatusCode.OUT_OF_RANGE,
        grpc.StatusCode.UNAVAILABLE,
        grpc.StatusCode.UNKNOWN,
    }
)
"""The statuses after which OTLP asks for the same request again; UNKNOWN is that of a broken proxy.

So does RESOURCE_EXHAUSTED with a `RetryInfo`. Without one it says that the request is too long, now and always."""

_DETAILS = "grpc-status-details-bin"
_RETRY = b"type.googleapis.com/google.rpc.RetryInfo"

_OPTIONS = (
    ("grpc.initial_reconnect_backoff_ms", 250),
    ("grpc.max_reconnect_backoff_ms", 2000),
    ("grpc.enable_http_proxy", 0),
)


class GrpcExporter(Exporter):
    """A channel, which reconnects by itself."""

    def __init__(self, endpoint: str, headers: Mapping[str, str], *, gzip: bool, certificates: bytes | None) -> None:
        address = urlsplit(endpoint)
        self._endpoint = endpoint
        self._metadata = tuple((name.lower(), value) for name, value in headers.items())
        compression = grpc.Compression.Gzip if gzip else grpc.Compression.NoCompression
        target = f"{address.hostname}:{address.port or 4317}" if ":" not in (address.hostname or "") else address.netloc
        if address.scheme == "https":
            credentials = grpc.ssl_channel_credentials(certificates)
            self._channel = grpc.secure_channel(target, credentials, _OPTIONS, compression)
        else:
            self._channel = grpc.insecure_channel(target, _OPTIONS, compression)

    def export(self, signal: Signal, request: bytes, timeout_s: float = TIMEOUT_S) -> bytes:
        """`Exporter.export`."""
        call = self._channel.unary_unary(_METHODS[signal], _as_is, _as_is)
        try:
            return bytes(call(request, timeout=timeout_s, metadata=self._metadata))
        except grpc.RpcError as error:
            code, details = error.code(), error.details()
            msg = f"the collector at {self._endpoint} answers {signal.value} with {code.name}: {details}"
            added = error.trailing_metadata() or ()
            later = any(each.key == _DETAILS and _RETRY in each.value for each in added)
            if code in _PASSING or (code is grpc.StatusCode.RESOURCE_EXHAUSTED and later):
                raise SinkError(msg) from error
            raise RejectedError(msg, lost=0, reason="rejected") from error

    def close(self) -> None:
        """`Exporter.close`."""
        self._channel.close()


def _as_is(data: bytes) -> bytes:
    return data
