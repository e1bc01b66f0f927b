"""`TextFiles`, the source of `heron_streamlet`, keeps the contract of sources."""

from __future__ import annotations

from pathlib import Path

import pytest

from file_feed import FileFeed
from heron_testing.connectors.feeds import SourceFeed
from heron_testing.contracts.source import SourceContract

pytestmark = pytest.mark.matrix


class TestTextFiles(SourceContract):
    """The files are complete when the pipeline starts, and there is no server."""

    program = Path(__file__).parent / "programs" / "read_text_files.py"
    partitions = 4
    live = False
    server_goes_away = False

    @pytest.fixture
    def feed(self, tmp_path: Path) -> SourceFeed:
        """Files of this test."""
        return FileFeed(tmp_path)
