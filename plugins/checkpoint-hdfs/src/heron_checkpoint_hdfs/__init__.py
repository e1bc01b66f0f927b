"""The checkpoint store for HDFS: objects are files below a folder."""

from __future__ import annotations

from heron_checkpoint_hdfs.driver import HdfsCheckpointStore

__all__ = ["HdfsCheckpointStore"]
