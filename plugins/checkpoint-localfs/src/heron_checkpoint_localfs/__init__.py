"""The checkpoint store for one machine: objects are files below a folder."""

from __future__ import annotations

from heron_checkpoint_localfs.driver import LocalfsCheckpointStore

__all__ = ["LocalfsCheckpointStore"]
