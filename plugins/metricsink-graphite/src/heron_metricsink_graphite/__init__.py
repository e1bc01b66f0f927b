"""The metrics sink for Graphite: carbon's plain text or pickle protocol."""

from __future__ import annotations

from heron_metricsink_graphite.sink import GraphiteSink

__all__ = ["GraphiteSink"]
