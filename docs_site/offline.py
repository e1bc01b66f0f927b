"""Whether a built site loads anything from the network."""

from __future__ import annotations

import re
from pathlib import Path

__all__ = ["loaded_from_network"]

_LOADED = re.compile(
    r"<(?:script|img|iframe|source|link(?=[^>]*rel=[\"']?(?:stylesheet|preconnect|preload|icon)))"
    r"[^>]*\b(?:src|href)=[\"']?((?:https?:)?//[^\"'\s>]+)"
)


def loaded_from_network(site: Path) -> list[str]:
    """``PAGE: URL`` of each script, style, font or picture that a page of the site would load from a server."""
    pages = sorted(site.rglob("*.html"))
    return [
        f"{page.relative_to(site).as_posix()}: {url}"
        for page in pages
        for url in _LOADED.findall(page.read_text(encoding="utf-8"))
    ]
