"""The state backend for state larger than memory: entries are in a database file of the task."""

from __future__ import annotations

from heron_state_lmdb.driver import LmdbStateBackend

__all__ = ["LmdbStateBackend"]
