"""The uploader for one machine: packages are files in a folder."""

from __future__ import annotations

from heron_uploader_localfs.uploader import LocalfsUploader

__all__ = ["LocalfsUploader"]
