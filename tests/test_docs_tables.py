"""Each table of the documents is whole: a header, a line of dashes, and rows with as many cells as the header."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

import pytest
from docs_site.documents import documents

ROOT = Path(__file__).resolve().parents[1]
FENCE = re.compile(r"^(```|~~~).*?^\1$", re.DOTALL | re.MULTILINE)
DASHES = re.compile(r"\|(\s*:?-+:?\s*\|)+")
CELL_END = re.compile(r"(?<!\\)\|")


def broken_tables(text: str) -> Iterator[str]:
    """The rows that a viewer shows as text, or with more or fewer cells than the header."""
    lines = FENCE.sub("", text).splitlines()
    for is_table, group in groupby(lines, lambda line: line.startswith("|")):
        if not is_table:
            continue
        header, *rows = group
        if not rows or not DASHES.fullmatch(rows[0]):
            yield header
        yield from (row for row in rows if cells(row) != cells(header))


def cells(row: str) -> int:
    """The number of cells; a bar that ends none is written with a backslash, also in code."""
    return len(CELL_END.findall(row)) - 1


def test_tables_are_whole() -> None:
    """An empty line in a table turns the rest into text, and a bar without a backslash moves all cells behind it."""
    texts = {page: (ROOT / page).read_text(encoding="utf-8") for page in documents(ROOT)}
    assert [f"{page}: {row}" for page, text in texts.items() for row in broken_tables(text)] == []


@pytest.mark.parametrize(
    ("text", "broken"),
    [
        ("| a | b |\n|---|---|\n| 1 | `x\\|y` |\n", []),
        ("| a |\n|---|\n| 1 |\n\n| 2 |\n", ["| 2 |"]),
        ("| a |\n|---|\n| `x|y` |\n", ["| `x|y` |"]),
        ("```\n| no table |\n```\n", []),
    ],
)
def test_a_broken_table_is_found(text: str, broken: list[str]) -> None:
    """Rows behind an empty line, and a bar in a cell."""
    assert list(broken_tables(text)) == broken
