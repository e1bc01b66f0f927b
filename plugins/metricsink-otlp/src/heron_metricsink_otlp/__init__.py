"""The metrics sink for OpenTelemetry: OTLP over gRPC or HTTP."""

from __future__ import annotations

from heron_metricsink_otlp.sink import OtlpSink

__all__ = ["OtlpSink"]
