"""The uploader for S3: packages are objects of a bucket."""

from __future__ import annotations

from heron_uploader_s3.uploader import S3Uploader

__all__ = ["S3Uploader"]
