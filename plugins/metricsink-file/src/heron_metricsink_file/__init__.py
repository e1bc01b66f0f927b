"""The metrics sink for one machine: files with one JSON object a line."""

from __future__ import annotations

from heron_metricsink_file.sink import FileSink

__all__ = ["FileSink"]
