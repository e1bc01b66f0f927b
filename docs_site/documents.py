"""The documents of the repository and the links between them."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from pathlib import Path

__all__ = ["broken_links", "documents", "linked_paths", "links"]

_PATTERNS = (
    "*.md",
    "docs/**/*.md",
    "heron-core/*.md",
    "plugins/*/*.md",
    "examples/**/*.md",
    "bench/*.md",
)
_LINK = re.compile(r"\]\(([^)\s#]*)(?:#([^)\s]*))?\)")
_HEADING = re.compile(r"^#+ +(.+?) *#*$", re.MULTILINE)


def documents(root: Path) -> list[str]:
    """The paths of all documents, relative to `root`, sorted."""
    return sorted({path.relative_to(root).as_posix() for pattern in _PATTERNS for path in root.glob(pattern)})


def links(text: str) -> Iterator[tuple[str, str]]:
    """Target and anchor of each link to this repository; either may be empty."""
    for target, anchor in _LINK.findall(text):
        if "://" not in target:
            yield target, anchor


def broken_links(document: Path) -> list[str]:
    """The links of a document that lead to no file or no heading."""
    broken = []
    for target, anchor in links(document.read_text(encoding="utf-8")):
        path = document.parent / target if target else document
        if not path.exists():
            broken.append(target)
        elif anchor and path.suffix == ".md" and anchor not in _anchors(path.read_text(encoding="utf-8")):
            broken.append(f"{target}#{anchor}")
    return broken


def linked_paths(document: str, text: str) -> set[str]:
    """The targets of a document's links, relative to the root of the repository."""
    folder = posixpath.dirname(document)
    return {posixpath.normpath(posixpath.join(folder, target)) for target, _ in links(text) if target}


def _anchors(text: str) -> set[str]:
    """The anchors that a reader's viewer makes of the headings: lower case, hyphens, no punctuation."""
    headings = (re.sub(r"[^\w\- ]", "", heading.lower()) for heading in _HEADING.findall(text))
    return {heading.replace(" ", "-") for heading in headings}
