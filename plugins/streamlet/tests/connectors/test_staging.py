"""Files that wait for their checkpoint: their order, and a folder that cannot be made."""

from __future__ import annotations

from pathlib import Path

import pytest

from heron.errors import ConnectorError
from heron_streamlet.connectors.staging import StagingFolder


def test_files_are_in_the_order_of_their_checkpoints(tmp_path: Path) -> None:
    """The order of names is not that of numbers in other lengths."""
    folder = StagingFolder(tmp_path, "counts", "run", 0)
    for checkpoint in (9, 10, 2_000_000_000_000):
        folder.file().write(b"x")
        folder.prepare(checkpoint)
    assert [each.checkpoint for each in folder.staged(1)] == [9, 10, 2_000_000_000_000]
    folder.file().write(b"open")
    folder.discard(2_000_000_000_000, 1)
    folder.prepare(11)
    assert len(list(tmp_path.iterdir())) == 3


def test_staging_folder_that_cannot_be_made_is_an_error(tmp_path: Path) -> None:
    """The task says so when it starts."""
    (tmp_path / "file").write_text("")
    with pytest.raises(ConnectorError, match=r"the staging folder .*file/staged cannot be made: Not a directory"):
        StagingFolder(tmp_path / "file" / "staged", "counts", "run", 0)
