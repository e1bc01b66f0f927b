"""Private folders: modes, also of the parents, and what is there already."""

from __future__ import annotations

from pathlib import Path

import pytest

from heron.driver_kit.private_files import make_private_dir


def test_missing_parents_are_private_too(tmp_path: Path) -> None:
    """``mkdir -p`` gives its mode to the last folder only, and names in a parent tell something too."""
    make_private_dir(tmp_path / "a" / "b")
    assert [each.stat().st_mode & 0o777 for each in (tmp_path / "a", tmp_path / "a" / "b")] == [0o700, 0o700]


def test_what_is_there_stays_as_it_is(tmp_path: Path) -> None:
    """A person may have opened a folder to others on purpose."""
    (tmp_path / "a").mkdir(mode=0o755)
    make_private_dir(tmp_path / "a")
    assert (tmp_path / "a").stat().st_mode & 0o777 == 0o755


def test_file_in_the_way_is_an_error(tmp_path: Path) -> None:
    """The caller explains it; it must not pass for a folder."""
    (tmp_path / "a").touch()
    with pytest.raises(FileExistsError):
        make_private_dir(tmp_path / "a")
    with pytest.raises(NotADirectoryError):
        make_private_dir(tmp_path / "a" / "b")
