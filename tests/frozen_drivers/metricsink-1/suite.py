"""The contract of metrics sinks, kept by the driver ``journal``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec
import pytest
from heron.spi.metricsink import Event, Metric, MetricsRecord
from heron_metricsink_journal import JournalSink
from heron_testing.contracts.metricsink import MetricsSinkContract
from heron_testing.faults import Faults, file_faults


class TestJournalSink(MetricsSinkContract):
    name = "journal"
    driver_class = JournalSink

    @pytest.fixture(autouse=True)
    def path(self, tmp_path: Path) -> Path:
        self.journal = tmp_path / "metrics" / "journal"
        self.journal.parent.mkdir()
        return self.journal

    @pytest.fixture
    def options(self, path: Path) -> dict[str, object]:
        return {"file": str(path)}

    @pytest.fixture
    def faults(self, path: Path) -> Faults:
        return file_faults(path.parent)

    def metrics(self) -> Sequence[Metric]:
        return [metric for record in self._records() for metric in record.metrics]

    def events(self) -> Sequence[Event]:
        return [event for record in self._records() for event in record.events]

    def _records(self) -> list[MetricsRecord]:
        lines = self.journal.read_bytes().splitlines() if self.journal.exists() else []
        return [msgspec.json.decode(line, type=MetricsRecord) for line in lines]
