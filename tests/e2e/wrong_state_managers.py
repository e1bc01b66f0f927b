"""State managers with one mistake each, which other processes can import too (see `test_suites_can_fail`)."""

from __future__ import annotations

import contextlib
import os
import sqlite3
from typing import ClassVar

from heron.spi.statemgr import NodeKind
from heron_statemgr_localfs.state_manager import LocalFsOptions, LocalFsStateManager

__all__ = ["CreationRace", "LimitNotEnforced", "ReadableSecrets", "SetDropsHold"]

_TABLES = 300  # the creation takes so long that other processes meet it


class SetDropsHold(LocalFsStateManager):
    """Replaces a held node by an ordinary node."""

    def set(self, kind: NodeKind, topology: str, value: bytes, *, expected: int | None = None) -> int:
        """Remove the node first."""
        present = self.get(kind, topology)
        if present is None or expected not in (None, present.version):
            return super().set(kind, topology, value, expected=expected)
        self.delete(kind, topology)
        return super().set(kind, topology, value)


class ReadableSecrets(LocalFsStateManager):
    """Writes files with the mode that the umask leaves."""

    def set(self, kind: NodeKind, topology: str, value: bytes, *, expected: int | None = None) -> int:
        """Make the file readable for all users."""
        version = super().set(kind, topology, value, expected=expected)
        umask = os.umask(0)
        os.umask(umask)
        (self._root / kind.value / topology).chmod(0o666 & ~umask)
        return version


class LimitNotEnforced(LocalFsStateManager):
    """Declares a limit, and takes larger values."""

    max_value_bytes: ClassVar[int | None] = 1000


class CreationRace(LocalFsStateManager):
    """Creates the tables of a database at the first open, and does not wait for a process that creates them too."""

    def __init__(self, options: LocalFsOptions) -> None:
        super().__init__(options)
        with contextlib.closing(sqlite3.connect(self._root / "store.db", timeout=0)) as database:
            database.execute("PRAGMA journal_mode = WAL")
            with database:
                for number in range(_TABLES):
                    database.execute(f"CREATE TABLE IF NOT EXISTS part_{number} (name TEXT PRIMARY KEY, value BLOB)")
