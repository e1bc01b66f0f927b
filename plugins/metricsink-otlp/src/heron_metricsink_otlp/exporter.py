"""What sends requests to a collector, and the answers of a collector."""

from __future__ import annotations

import enum
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

from google.protobuf.message import DecodeError, Message
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest, ExportLogsServiceResponse
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceRequest,
    ExportMetricsServiceResponse,
)
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from opentelemetry.proto.logs.v1.logs_pb2 import ResourceLogs
from opentelemetry.proto.metrics.v1.metrics_pb2 import ResourceMetrics
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans

from heron.errors import SinkError

__all__ = ["TIMEOUT_S", "Exporter", "RejectedError", "Signal", "answered", "request_of"]

TIMEOUT_S = 2.5
"""Of one request: a flush may block for 10 s, and has one for each signal."""


class Signal(enum.StrEnum):
    """The kinds of data, by the names that profiles use."""

    METRICS = "metrics"
    EVENTS = "events"
    TRACES = "traces"


@dataclass(frozen=True, slots=True)
class Refusal:
    """The part of a request that a collector refused for good."""

    count: int
    reason: str


class RejectedError(SinkError):
    """The collector refuses a request for good: sending it again is useless."""


class Exporter(ABC):
    """Sends requests over one transport. The first request connects."""

    @abstractmethod
    def export(self, signal: Signal, request: bytes, timeout_s: float = TIMEOUT_S) -> bytes:
        """Send a request and return the answer.

        Raises:
            RejectedError: when the collector refuses it for good.
            SinkError: when the collector cannot take it now, or does not answer in time.
        """

    @abstractmethod
    def close(self) -> None:
        """Close the connection; idempotent."""


def request_of(signal: Signal, parts: Sequence[bytes]) -> bytes:
    """Return the request with these messages, each the data of one resource."""
    made: Message
    if signal is Signal.METRICS:
        made = ExportMetricsServiceRequest(resource_metrics=map(ResourceMetrics.FromString, parts))
    elif signal is Signal.EVENTS:
        made = ExportLogsServiceRequest(resource_logs=map(ResourceLogs.FromString, parts))
    else:
        made = ExportTraceServiceRequest(resource_spans=map(ResourceSpans.FromString, parts))
    return made.SerializeToString()


def answered(signal: Signal, answer: bytes) -> Refusal | None:
    """Return what the collector refused of a request that it has taken; None: nothing.

    Raises:
        SinkError: when the answer is none of OTLP.
    """
    try:
        if signal is Signal.METRICS:
            of_metrics = ExportMetricsServiceResponse.FromString(answer).partial_success
            count, reason = of_metrics.rejected_data_points, of_metrics.error_message
        elif signal is Signal.EVENTS:
            of_logs = ExportLogsServiceResponse.FromString(answer).partial_success
            count, reason = of_logs.rejected_log_records, of_logs.error_message
        else:
            of_spans = ExportTraceServiceResponse.FromString(answer).partial_success
            count, reason = of_spans.rejected_spans, of_spans.error_message
    except DecodeError as error:
        msg = f"the answer to {signal.value} is none of OTLP: {error}; is the endpoint a collector?"
        raise SinkError(msg) from error
    return Refusal(count, reason) if count > 0 else None
