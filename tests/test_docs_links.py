"""Links between the documents of this repository lead somewhere."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
LINK = re.compile(r"\]\(([^)\s#]*)(?:#([^)\s]*))?\)")
HEADING = re.compile(r"^#+ +(.+?) *#*$", re.MULTILINE)
DOCUMENTS = sorted(
    path
    for pattern in (
        "*.md",
        "docs/**/*.md",
        "heron-core/*.md",
        "plugins/*/*.md",
        "examples/**/*.md",
        "bench/*.md",
    )
    for path in ROOT.glob(pattern)
)


def anchors(text: str) -> set[str]:
    """The anchors that a reader's viewer makes of the headings: lower case, hyphens, no punctuation."""
    headings = (re.sub(r"[^\w\- ]", "", heading.lower()) for heading in HEADING.findall(text))
    return {heading.replace(" ", "-") for heading in headings}


def broken_links(document: Path) -> list[str]:
    broken = []
    for target, anchor in LINK.findall(document.read_text(encoding="utf-8")):
        path = document.parent / target if target else document
        if "://" in target:
            continue
        if not path.exists():
            broken.append(target)
        elif anchor and path.suffix == ".md" and anchor not in anchors(path.read_text(encoding="utf-8")):
            broken.append(f"{target}#{anchor}")
    return broken


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_lead_to_files_and_headings_that_exist(document: Path) -> None:
    """A reader who follows a link to nothing stops trusting the rest."""
    assert broken_links(document) == []
