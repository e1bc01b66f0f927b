"""OTLP over HTTP, with messages in protobuf."""

from __future__ import annotations

import gzip as gzip_format
import ssl
from collections.abc import Mapping

import httpx
from google.protobuf.message import DecodeError
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse

from heron.errors import SinkError
from heron_metricsink_otlp.exporter import TIMEOUT_S, Exporter, RejectedError, Signal

__all__ = ["HttpExporter"]

_PATHS = {Signal.METRICS: "/v1/metrics", Signal.EVENTS: "/v1/logs", Signal.TRACES: "/v1/traces"}
_PASSING = frozenset({429, 502, 503, 504})
_SHOWN = 200  # characters of an answer
_TYPE = "application/x-protobuf"


class HttpExporter(Exporter):
    """A client that keeps its connection."""

    def __init__(self, endpoint: str, headers: Mapping[str, str], *, gzip: bool, certificates: bytes | None) -> None:
        self._endpoint = endpoint.rstrip("/")
        self._gzip = gzip
        own = {"content-type": _TYPE} | ({"content-encoding": "gzip"} if gzip else {})
        trusted = ssl.create_default_context()
        if certificates is not None:
            trusted = ssl.create_default_context(cadata=certificates.decode("ascii"))
        self._client = httpx.Client(headers={**headers, **own}, verify=trusted, trust_env=False)

    def export(self, signal: Signal, request: bytes, timeout_s: float = TIMEOUT_S) -> bytes:
        """`Exporter.export`."""
        data = gzip_format.compress(request, compresslevel=1) if self._gzip else request
        try:
            answer = self._client.post(self._endpoint + _PATHS[signal], content=data, timeout=timeout_s)
        except httpx.HTTPError as error:
            msg = f"the collector at {self._endpoint} does not answer {signal.value}: {type(error).__name__}: {error}"
            raise SinkError(msg) from error
        if answer.status_code == httpx.codes.OK:
            return _protobuf(answer, self._endpoint)
        shown = answer.text[:_SHOWN]
        msg = f"the collector at {self._endpoint} answers {signal.value} with {answer.status_code}: {shown!r}"
        if answer.status_code in _PASSING:
            raise SinkError(msg)
        raise RejectedError(msg, lost=0, reason="rejected")

    def close(self) -> None:
        """`Exporter.close`."""
        self._client.close()


def _protobuf(answer: httpx.Response, endpoint: str) -> bytes:
    """Return the body, which must be protobuf: a web server that answers everything with 200 is no collector."""
    content_type = answer.headers.get("content-type", "")
    if not content_type.startswith(_TYPE):
        msg = f"{endpoint} answers with {content_type or 'no type'}, not with protobuf; is it a collector of OTLP?"
        raise SinkError(msg)
    try:
        ExportTraceServiceResponse.FromString(answer.content)
    except DecodeError as error:
        msg = f"{endpoint} answers with bytes that are no protobuf; is it a collector of OTLP?"
        raise SinkError(msg) from error
    return answer.content
