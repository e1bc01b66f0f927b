"""The installed entry points, which a process reads once: with 170 distributions that takes 25 ms of a processor."""

from __future__ import annotations

import functools
import importlib.metadata
import sys
from pathlib import Path
from typing import Protocol

__all__ = ["EntryPoints", "installed_points"]


class EntryPoints(Protocol):
    """What `importlib.metadata` returns, in Python 3.11 by another name."""

    @property
    def groups(self) -> set[str]:
        """The groups that have an entry point."""

    def select(self, *, group: str) -> importlib.metadata.EntryPoints:
        """Return the entry points of a group."""


def installed_points() -> EntryPoints:
    """Return all entry points; they are read again if a folder of modules or a finder has changed."""
    return _read(tuple((folder, _changed_ns(folder)) for folder in sys.path), tuple(sys.meta_path))


@functools.lru_cache(maxsize=1)
def _read(_folders: tuple[tuple[str, int], ...], _finders: tuple[object, ...]) -> EntryPoints:
    return importlib.metadata.entry_points()


def _changed_ns(folder: str) -> int:
    try:
        return Path(folder).stat().st_mtime_ns
    except OSError:
        return 0
