"""Writes records as JSON lines: metrics and events in files of their own, per container.

The metrics managers of a run may share one folder; each writes only its own container's files, so none of them
renames a file that another one is writing.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, ClassVar, Self

import msgspec

from heron.errors import ConfigError
from heron.spi.metricsink import MetricsRecord, MetricsSink
from heron.spi.options import decode_options
from heron_metricsink_file.line_file import LineFile

__all__ = ["FileOptions", "FileSink"]


class FileOptions(msgspec.Struct, frozen=True):
    """The driver's section of a profile: the folder of the files, the size of one, and how many are kept."""

    directory: Annotated[str, msgspec.Meta(min_length=1)]
    max_bytes: Annotated[int, msgspec.Meta(ge=4096)] = 16 * 1024 * 1024
    files: Annotated[int, msgspec.Meta(ge=1, le=1000)] = 3


class FileSink(MetricsSink):
    """Appends to ``metrics-CONTAINER.jsonl`` and ``events-CONTAINER.jsonl`` in one folder."""

    spi_version: ClassVar[int] = 1
    capabilities: ClassVar[frozenset[str]] = frozenset({"events", "files", "histograms", "history"})
    options_type: ClassVar[type] = FileOptions

    def __init__(self, directory: Path, max_bytes: int, files: int) -> None:
        self._directory = directory
        self._max_bytes = max_bytes
        self._files = files
        self._open: dict[str, LineFile] = {}

    @classmethod
    def open(cls, options: Mapping[str, object]) -> Self:
        """Takes the options `directory`, `max_bytes` and `files`; touches nothing yet."""
        chosen = decode_options(options, FileOptions, "metricsink")
        return cls(Path(chosen.directory).expanduser(), chosen.max_bytes, chosen.files)

    def check(self, timeout_s: float) -> str:
        """The folder can be written, or made."""
        there = next(each for each in (self._directory, *self._directory.parents) if os.path.lexists(each))
        if not there.is_dir() or not os.access(there, os.W_OK | os.X_OK):
            msg = f"metricsink.directory: {there} is not a folder that can be written to; choose another one"
            raise ConfigError(msg)
        return f"folder {self._directory}"

    def process(self, record: MetricsRecord) -> None:
        """Writes one line for the metrics, if there are any, and one for each event."""
        container = record.source.container_id
        if record.metrics:
            line = {"at_s": record.at_s, "source": record.source, "metrics": record.metrics}
            self._append(f"metrics-{container}.jsonl", line)
        for event in record.events:
            self._append(f"events-{container}.jsonl", {**asdict(event), "source": record.source})

    def flush(self) -> None:
        """Does nothing: every line is with the operating system once it is written."""

    def close(self) -> None:
        """Closes the files."""
        for each in self._open.values():
            each.close()

    def _append(self, name: str, line: dict[str, object]) -> None:
        if name not in self._open:
            self._open[name] = LineFile(self._directory / name, self._max_bytes, self._files)
        self._open[name].append(msgspec.json.encode(line))
