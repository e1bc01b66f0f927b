"""The metrics sink for Scribe."""

from __future__ import annotations

from heron_metricsink_scribe.sink import ScribeSink

__all__ = ["ScribeSink"]
