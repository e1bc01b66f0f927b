"""The uploader for many machines: packages are objects of an S3 bucket."""

from __future__ import annotations

from heron_uploader_s3.uploader import S3Uploader

__all__ = ["S3Uploader"]
