"""Writes records as JSON lines: one file of metrics and one file of events for each container.

The metrics managers of a run can share one folder. Each writes only the files of its container, so no metrics manager
renames a file that another metrics manager is writing.
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
    """The driver's section of a profile: the folder, the largest file, and the number of files that are kept."""

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
        """Read the options; the first record creates the folder and the files."""
        chosen = decode_options(options, FileOptions, "metricsink")
        return cls(Path(chosen.directory).expanduser(), chosen.max_bytes, chosen.files)

    def check(self, timeout_s: float) -> str:
        """Check that the folder can be written to, or created."""
        existing = next(each for each in (self._directory, *self._directory.parents) if os.path.lexists(each))
        if not existing.is_dir() or not os.access(existing, os.W_OK | os.X_OK):
            msg = f"metricsink.directory: {existing} is not a writable folder; choose another folder"
            raise ConfigError(msg)
        return f"folder {self._directory}"

    def process(self, record: MetricsRecord) -> None:
        """Write one line for the metrics, if there are any, and one line for each event."""
        container = record.source.container_id
        if record.metrics:
            line = {"at_s": record.at_s, "source": record.source, "metrics": record.metrics}
            self._append(f"metrics-{container}.jsonl", line)
        for event in record.events:
            self._append(f"events-{container}.jsonl", {**asdict(event), "source": record.source})

    def flush(self) -> None:
        """Do nothing: `process` has passed each line to the operating system."""

    def close(self) -> None:
        for each in self._open.values():
            each.close()

    def _append(self, name: str, line: dict[str, object]) -> None:
        if name not in self._open:
            self._open[name] = LineFile(self._directory / name, self._max_bytes, self._files)
        self._open[name].append(msgspec.json.encode(line))
