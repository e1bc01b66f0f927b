"""The logs of a directory, across their rotations, as a source of pipelines."""

from __future__ import annotations

from heron_connector_files.log_line import LogLine
from heron_connector_files.source import FilesSource

__all__ = ["FilesSource", "LogLine"]
