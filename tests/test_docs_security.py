"""SECURITY.md names a test for each threat, and each of these tests exists."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
TEXT = (ROOT / "SECURITY.md").read_text(encoding="utf-8")
THREATS = TEXT.partition("## Threats")[2]
ROWS = [line.split(" | ") for line in THREATS.splitlines() if line.startswith("| ") and "| test |" not in line]
NAMED = re.compile(r"`([\w./-]+\.py)::(test_\w+)`")


@cache
def names_in(file: Path) -> set[str]:
    """The names of the tests in a file."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    return {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}


def test_every_threat_has_a_defence_and_a_test() -> None:
    """A promise without a test does not stay true."""
    assert len(ROWS) > 20
    for threat, defence, tests in ROWS:
        assert len(threat) > 5, threat
        assert len(defence) > 5, threat
        assert NAMED.search(tests), f"{threat} has no test"
        assert NAMED.sub("", tests).strip(" ,|") == "", f"{threat}: {tests} is not a list of tests"


def test_a_test_that_the_page_names_exists() -> None:
    """A test that is renamed or removed takes its row along."""
    for file, test in NAMED.findall(THREATS):
        assert (ROOT / file).is_file(), file
        assert test in names_in(ROOT / file), f"{file}::{test}"


def test_every_test_of_the_folder_of_security_is_on_the_page() -> None:
    """A reader sees there what is tried, and a new test gets its row."""
    files = (ROOT / "tests" / "e2e" / "security").glob("test_*.py")
    there = {(path.relative_to(ROOT).as_posix(), test) for path in files for test in names_in(path)}
    assert {each for each in there if each[1].startswith("test_")} <= set(NAMED.findall(THREATS))
