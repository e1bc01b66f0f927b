"""GLOSSARY.md gives each term one entry."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

GLOSSARY = (Path(__file__).resolve().parents[1] / "GLOSSARY.md").read_text(encoding="utf-8")


def entries() -> list[str]:
    """The terms of all tables; an entry may have several, between commas."""
    rows = re.findall(r"^\| ([^|]+) \| ", GLOSSARY, re.MULTILINE)
    return [term.strip() for row in rows if row != "term" for term in re.sub(r" \(.*?\)", "", row).split(",")]


def test_each_term_has_one_entry() -> None:
    """A reader who finds one entry must not miss a second meaning."""
    assert [term for term, count in Counter(entries()).items() if count > 1] == []


def test_a_term_in_italics_has_an_entry() -> None:
    """The page says so; a plural counts as its term."""
    known = {term.lower() for term in entries()}
    named = {
        term.lower() for term in re.findall(r"(?<!\*)\*([a-zA-Z][a-zA-Z ]+)\*(?!\*)", GLOSSARY.split("\n## ", 1)[1])
    }
    assert {term for term in named if not {term, term.removesuffix("s"), term.removesuffix("es")} & known} == set()
