"""Where an installed plugin comes from: its distribution, and how that got here (PEP 610)."""

from __future__ import annotations

import enum
import importlib.metadata
import json
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urlsplit

__all__ = ["Provider", "SourceKind", "provider_of"]


class SourceKind(enum.StrEnum):
    """How a distribution got onto the path."""

    WHEEL = "wheel"
    """Installed; `Provider.place` is what it was built or fetched from, or the folder that it was installed into."""
    EDITABLE = "editable"
    """Used where it lies: a change of its source works at once."""
    PATH = "path"
    """Found in a folder of the path that no installer put there (``PYTHONPATH``)."""


@dataclass(frozen=True, slots=True)
class Provider:
    """A distribution with its version; `place` is a folder or URL."""

    distribution: str
    version: str
    source: SourceKind
    place: str


def provider_of(entry_point: importlib.metadata.EntryPoint) -> Provider:
    """The distribution that an entry point is from."""
    found = entry_point.dist
    if found is None:
        return Provider("an unknown distribution", "", SourceKind.PATH, "")
    folder = str(Path(str(found.locate_file(""))))
    url, editable = _direct_url(found)
    if url:
        return Provider(found.name, found.version, SourceKind.EDITABLE if editable else SourceKind.WHEEL, url)
    kind = SourceKind.WHEEL if found.read_text("INSTALLER") else SourceKind.PATH
    return Provider(found.name, found.version, kind, folder)


def _direct_url(found: importlib.metadata.Distribution) -> tuple[str, bool]:
    """What was given to the installer, if it was not a name of an index; and whether it is used where it lies."""
    try:
        said = json.loads(found.read_text("direct_url.json") or "{}")
        url, editable = str(said.get("url", "")), bool(said.get("dir_info", {}).get("editable", False))
    except (ValueError, AttributeError):
        return "", False
    parts = urlsplit(url)
    if parts.scheme == "file":
        return unquote(parts.path), editable
    # A user name or token before the host is nobody's business here.
    return parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl(), editable
