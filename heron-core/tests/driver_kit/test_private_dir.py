"""Private folders: modes of new folders and parents, and existing files."""

from __future__ import annotations

from pathlib import Path

import pytest

from heron.driver_kit.private_files import make_private_dir


def test_missing_parents_are_private_too(tmp_path: Path) -> None:
    """``mkdir -p`` sets the mode of the last folder only. The names in a parent are private too."""
    make_private_dir(tmp_path / "a" / "b")
    assert [each.stat().st_mode & 0o777 for each in (tmp_path / "a", tmp_path / "a" / "b")] == [0o700, 0o700]


def test_existing_folders_keep_their_mode(tmp_path: Path) -> None:
    """A person may have set the mode on purpose."""
    (tmp_path / "a").mkdir(mode=0o755)
    make_private_dir(tmp_path / "a")
    assert (tmp_path / "a").stat().st_mode & 0o777 == 0o755


def test_file_in_the_way_is_an_error(tmp_path: Path) -> None:
    """The caller reports the error."""
    (tmp_path / "a").touch()
    with pytest.raises(FileExistsError):
        make_private_dir(tmp_path / "a")
    with pytest.raises(NotADirectoryError):
        make_private_dir(tmp_path / "a" / "b")
