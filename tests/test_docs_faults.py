"""The page on faults promises nothing that no test shows."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "faults.md"
TEST = re.compile(r"`([\w/.-]+\.py)::(\w+)`")
HEADINGS = ("Processes", "Standbys", "Network", "Overload", "Environment")
COLUMNS = 5


def rows(page: str) -> list[list[str]]:
    """The cells of each row of its tables, heads and rules left out."""
    lines = [line for line in page.splitlines() if line.startswith("|")]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return [row for row in cells if row[0] != "what happens" and not set(row[0]) <= set("-")]


ROWS = rows(PAGE.read_text(encoding="utf-8"))


def functions_in(file: str) -> set[str]:
    """The names of the test functions in a file; none when it is not there."""
    path = ROOT / file
    if not path.is_file():
        return set()
    found = ast.walk(ast.parse(path.read_text(encoding="utf-8")))
    return {node.name for node in found if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")}


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0])
def test_every_row_names_a_test_that_exists(row: list[str]) -> None:
    """A promise that nothing checks is a hope."""
    assert len(row) == COLUMNS, f"a row has {COLUMNS} cells: {row}"
    named = TEST.findall(row[-1])
    assert named, f"{row[0]!r} names no test"
    for file, name in named:
        assert name in functions_in(file), f"{row[0]!r}: there is no {file}::{name}"


def test_the_page_has_all_its_parts() -> None:
    """Who looks for a kind of fault finds its heading, and something below most of them."""
    text = PAGE.read_text(encoding="utf-8")
    assert re.findall(r"^## (.+)$", text, re.MULTILINE) == list(HEADINGS)
    assert len(ROWS) > 15
