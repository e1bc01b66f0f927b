"""`DeltaSource` keeps the contract of sources."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from threading import Lock

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from heron_testing.connectors.feeds import SourceFeed
from heron_testing.contracts.source import SourceContract

pytestmark = pytest.mark.matrix


class TableFeed(SourceFeed):
    """A table with a file for each call, as a file is a partition of the source."""

    def __init__(self, table: Path) -> None:
        self._table, self._lock = table, Lock()
        self.given = {"table": str(table)}

    def put(self, partition: int, texts: Sequence[str]) -> None:
        """Append a file."""
        with self._lock:
            write_deltalake(self._table, pa.table({"text": texts}), mode="append")


class TestDeltaSource(SourceContract):
    """The version of the table is that of the start. Its storage is a folder, which does not go away."""

    program = Path(__file__).parent / "programs" / "read_table.py"
    partitions = 4
    live = False
    server_goes_away = False

    @pytest.fixture
    def feed(self, tmp_path: Path) -> SourceFeed:
        """A table of this test."""
        return TableFeed(tmp_path / "texts")
