"""The metrics sink that writes to files, one JSON object per line."""

from __future__ import annotations

from heron_metricsink_file.sink import FileSink

__all__ = ["FileSink"]
