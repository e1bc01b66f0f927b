"""`TextFolder`, the sink of `heron_streamlet`, keeps the contract of sinks."""

from __future__ import annotations

from pathlib import Path

import pytest

from heron_testing.connectors.feeds import SinkTarget
from heron_testing.contracts.sink import SinkContract

pytestmark = pytest.mark.matrix


class FolderTarget(SinkTarget):
    """The files that are committed."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.given = {"folder": str(folder)}

    def written(self) -> list[str]:
        """Of one checkpoint after the other."""
        paths = sorted(self._folder.glob("part-*.txt"), key=lambda path: path.name.rpartition("-")[2])
        return [line for path in paths for line in path.read_text(encoding="utf-8").splitlines()]


class TestTextFolder(SinkContract):
    """There is no server."""

    program = Path(__file__).parent / "programs" / "write_text_folder.py"
    server_goes_away = False
    bounded_while_away = False

    @pytest.fixture
    def target(self, tmp_path: Path) -> SinkTarget:
        """A folder of this test."""
        return FolderTarget(tmp_path / "texts")
