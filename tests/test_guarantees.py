"""The table of guarantees in CONTRIBUTING.md is the list of end-to-end tests that `./dev test` runs."""

from __future__ import annotations

import ast
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "tests" / "e2e"
ROW = re.compile(r"^\| (.+) \| (.+) \| `(\w+/test_\w+\.py)::(test_\w+)` \|$", re.MULTILINE)
LINK = re.compile(r"\]\(([\w/.-]+)\)")
FOLDER_TABLE = re.compile(r"^\| folder of .*\n\|[-|]+\|\n((?:\|.*\n)+)", re.MULTILINE)
MARK = "pytest.mark.guarantee"
WORD = "Guarantee: "
MOST = 70

TEXT = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
ROWS = [match.groups() for match in ROW.finditer(TEXT)]
FOLDERS = re.findall(r"^\| `(\w+)` \|", "".join(FOLDER_TABLE.findall(TEXT)), re.MULTILINE)
FILES = sorted(FOLDER.rglob("test_*.py"))


def marked() -> dict[tuple[str, str], set[str]]:
    """The guarantees that the docstring of each marked test ends with, by file and test."""
    found = {}
    for path in FILES:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef) and any(MARK in ast.unparse(each) for each in node.decorator_list):
                paragraphs = [" ".join(each.split()) for each in (ast.get_docstring(node) or "").split("\n\n")]
                texts = {each.removeprefix(WORD).removesuffix(".") for each in paragraphs if each.startswith(WORD)}
                found[path.relative_to(FOLDER).as_posix(), node.name] = texts
    return found


def test_each_marked_test_is_in_the_table_with_its_guarantees() -> None:
    """A contributor finds the test of a promise by the table, and the promises of a test by its docstring."""
    listed: dict[tuple[str, str], set[str]] = {}
    for guarantee, _, file, test in ROWS:
        listed.setdefault((file, test), set()).add(guarantee)
    assert listed == marked()


def test_no_guarantee_is_shown_twice() -> None:
    """A second test of the same guarantee has the mark `matrix`: it costs each run of `./dev test` seconds."""
    assert len({guarantee for guarantee, *_ in ROWS}) == len(ROWS)
    assert len(marked()) <= MOST, "each end-to-end test costs four seconds on average"


def test_each_guarantee_names_the_documents_that_promise_it() -> None:
    """A promise that no document makes needs no test here."""
    for guarantee, promised, *_ in ROWS:
        documents = LINK.findall(promised)
        assert documents, f"{guarantee!r} names no document"
        for document in documents:
            assert (ROOT / document).is_file(), f"{guarantee!r}: there is no {document}"


def test_the_table_of_folders_has_each_folder_with_tests() -> None:
    """A contributor finds there where a new test belongs; a file outside the folders belongs to no kind."""
    assert sorted(FOLDERS) == sorted({path.parent.relative_to(FOLDER).as_posix() for path in FILES})


def test_the_table_of_guarantees_has_the_order_of_the_folders() -> None:
    """A reader of one kind of guarantees finds all of them together."""
    places = [FOLDERS.index(file.partition("/")[0]) for _, _, file, _ in ROWS]
    assert places == sorted(places)


def test_no_two_end_to_end_files_have_the_same_name() -> None:
    """A recorded suite has the name of its file, without the folder."""
    names = [path.name for path in FILES]
    assert sorted(names) == sorted(set(names))
