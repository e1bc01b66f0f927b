"""The uploader for HTTP servers that accept PUT."""

from __future__ import annotations

from heron_uploader_http.uploader import HttpUploader

__all__ = ["HttpUploader"]
