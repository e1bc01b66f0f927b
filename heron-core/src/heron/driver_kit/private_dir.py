"""Folders that only their owner can enter."""

from __future__ import annotations

from pathlib import Path

__all__ = ["make_private_dir"]


def make_private_dir(path: Path) -> None:
    """Makes the folder and the parents it lacks, each with mode 0700; what is there already stays as it is.

    Raises:
        OSError: as ``mkdir`` does, also when something that is no folder stands in the way.
    """
    missing = [each for each in (path, *path.parents) if not each.exists()]
    for each in reversed(missing):
        each.mkdir(mode=0o700, exist_ok=True)
    if not path.is_dir():
        path.mkdir(mode=0o700)
