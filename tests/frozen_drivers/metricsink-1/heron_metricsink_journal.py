"""The sink ``journal``: each record as one line of JSON."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, ClassVar, Self

import msgspec

from heron.driver_kit.private_files import check_usable
from heron.errors import SinkError
from heron.spi.metricsink import MetricsRecord, MetricsSink
from heron.spi.options import decode_options


class JournalOptions(msgspec.Struct, frozen=True):
    file: Annotated[str, msgspec.Meta(min_length=1)]


class JournalSink(MetricsSink):
    """Appends whole lines, so a line is there completely or not at all."""

    spi_version: ClassVar[int] = 1
    capabilities: ClassVar[frozenset[str]] = frozenset({"events", "files", "histograms", "history", "traces"})
    options_type: ClassVar[type] = JournalOptions

    def __init__(self, path: Path) -> None:
        self._path = path
        self._kept: list[MetricsRecord] = []

    @classmethod
    def open(cls, options: Mapping[str, object]) -> Self:
        return cls(Path(decode_options(options, JournalOptions, "metricsink").file).expanduser().absolute())

    def check(self, timeout_s: float) -> str:
        try:
            check_usable(self._path.parent)
        except OSError as error:
            raise SinkError(f"metricsink.file: {error}; choose another file") from error
        return f"file {self._path}"

    def process(self, record: MetricsRecord) -> None:
        self._kept.append(record)

    def flush(self) -> None:
        kept, self._kept = self._kept, []
        lost = len(kept)
        try:
            descriptor = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
            try:
                for record in kept:
                    _append(descriptor, msgspec.json.encode(record) + b"\n")
                    lost -= 1
            finally:
                os.close(descriptor)
        except OSError as error:
            raise SinkError(
                f"{self._path} does not take {lost} records: {error}; free some space", lost=lost
            ) from error

    def close(self) -> None:
        """Nothing is open between two flushes."""


def _append(descriptor: int, line: bytes) -> None:
    end = os.fstat(descriptor).st_size
    rest = memoryview(line)
    try:
        while rest:
            rest = rest[os.write(descriptor, rest) :]
    except OSError:
        os.ftruncate(descriptor, end)
        raise
