"""The files of the pages, read once: no request names a file of the disk."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib import resources
from importlib.resources.abc import Traversable

__all__ = ["Asset", "read_assets"]

_FOLDER = "assets"
_MEDIA_TYPES = {
    ".css": "text/css",
    ".js": "text/javascript",
    ".svg": "image/svg+xml",
    ".txt": "text/plain",
}


@dataclass(frozen=True, slots=True)
class Asset:
    """A file: its bytes, its type, and a tag that changes with the bytes."""

    content: bytes
    media_type: str
    tag: str


def read_assets() -> Mapping[str, Asset]:
    """The files of the distribution by their path below ``/ui-assets/``."""
    return dict(_below(resources.files(__package__ or "").joinpath(_FOLDER), ""))


def _below(folder: Traversable, prefix: str) -> Iterator[tuple[str, Asset]]:
    for each in folder.iterdir():
        suffix = each.name[each.name.rfind(".") :]
        if each.is_dir():
            yield from _below(each, f"{prefix}{each.name}/")
        elif suffix in _MEDIA_TYPES:
            content = each.read_bytes()
            tag = f'"{hashlib.sha256(content).hexdigest()[:32]}"'
            yield f"{prefix}{each.name}", Asset(content, _MEDIA_TYPES[suffix], tag)
