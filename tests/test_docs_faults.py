"""Every promise of docs/faults.md names a test that shows it."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "faults.md"
TEST = re.compile(r"`([\w/.-]+\.py)::(\w+)`")
FAULT_TABLE = re.compile(r"^\| what happens \|.*\n\|[-|]+\|\n((?:\|.*\n)+)", re.MULTILINE)
HEADINGS = ("Processes", "Effectively once", "Standbys", "Network", "Overload", "Environment")
COLUMNS = 5


def rows(page: str) -> list[list[str]]:
    """The cells of each row of the tables of faults, without the header rows."""
    lines = [line for table in FAULT_TABLE.findall(page) for line in table.splitlines()]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


TEXT = PAGE.read_text(encoding="utf-8")
ROWS = rows(TEXT)


@cache
def functions_in(file: str) -> set[str]:
    """The names of the test functions in a file; empty if there is no such file."""
    path = ROOT / file
    if not path.is_file():
        return set()
    found = ast.walk(ast.parse(path.read_text(encoding="utf-8")))
    return {node.name for node in found if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")}


def test_every_row_names_a_test_that_exists() -> None:
    """Users rely on each row, so a test must check it."""
    for row in ROWS:
        assert len(row) == COLUMNS, f"a row has {COLUMNS} cells: {row}"
        named = TEST.findall(row[-1])
        assert named, f"{row[0]!r} names no test"
        for file, name in named:
            assert name in functions_in(file), f"{row[0]!r}: there is no {file}::{name}"


def test_the_page_has_a_table_of_faults_below_each_heading() -> None:
    """Readers look for a kind of fault by its heading."""
    headings = re.findall(r"^## (.+)$", TEXT, re.MULTILINE)
    assert headings == list(HEADINGS)
    for heading, section in zip(headings, re.split(r"^## ", TEXT, flags=re.MULTILINE)[1:], strict=True):
        assert rows(section + "\n"), f"no row below {heading!r}"
    assert len(ROWS) > 15
