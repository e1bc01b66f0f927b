"""`DeltaSink` keeps the contract of sinks."""

from __future__ import annotations

from pathlib import Path

import pytest
from deltalake import DeltaTable
from deltalake.exceptions import TableNotFoundError

from heron_testing.connectors.feeds import SinkTarget
from heron_testing.contracts.sink import SinkContract

pytestmark = pytest.mark.matrix


class TableTarget(SinkTarget):
    """A table in a folder."""

    def __init__(self, folder: Path) -> None:
        self._table = folder / "texts"
        self.given = {"table": str(self._table), "folder": str(folder / "staged")}

    def written(self) -> list[str]:
        """The rows of the newest version."""
        try:
            return list(DeltaTable(self._table).to_pyarrow_table().column("text").to_pylist())
        except TableNotFoundError:
            return []


class TestDeltaSink(SinkContract):
    """A table has no order of rows. Its storage is a folder, which does not go away."""

    program = Path(__file__).parent / "programs" / "write_table.py"
    ordered = False
    server_goes_away = False
    bounded_while_away = False

    @pytest.fixture
    def target(self, tmp_path: Path) -> SinkTarget:
        """A table of this test."""
        return TableTarget(tmp_path)
