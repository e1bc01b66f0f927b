"""The metrics sink that Prometheus scrapes."""

from __future__ import annotations

from heron_metricsink_prometheus.sink import PrometheusSink

__all__ = ["PrometheusSink"]
