"""The checkpoint store for S3: objects of a bucket."""

from __future__ import annotations

from heron_checkpoint_s3.driver import S3CheckpointStore

__all__ = ["S3CheckpointStore"]
