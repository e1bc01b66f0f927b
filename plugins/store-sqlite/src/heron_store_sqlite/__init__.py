"""The store of views in SQLite: a file for each view, for the processes of one machine."""

from __future__ import annotations

from heron_store_sqlite.driver import SqliteViewStore

__all__ = ["SqliteViewStore"]
