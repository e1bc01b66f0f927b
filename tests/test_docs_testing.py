"""The files of the page on testing are tests that pass."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from heron_testing.heron_run import HeronRun
from heron_testing.sandbox import Sandbox

DOCS = Path(__file__).resolve().parents[1] / "docs"
PAGE = (DOCS / "testing.md").read_text(encoding="utf-8")
FILE = re.compile(r"^```python\n# (\S+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
FILES = dict(FILE.findall(PAGE))
TESTS = [name for name in FILES if name.startswith("test_")]


@pytest.mark.matrix
def test_the_tests_of_the_page_pass(tmp_path: Path) -> None:
    """Readers begin with a copy of them."""
    check(FILES, tmp_path, *TESTS)


@pytest.mark.matrix
def test_the_connector_of_the_page_on_connectors_passes(tmp_path: Path) -> None:
    """One case of its suite; `tests/contract` has the same connector with all cases."""
    files = dict(FILE.findall((DOCS / "testing-connectors.md").read_text(encoding="utf-8")))
    assert set(files) == {"programs/read_text_files.py", "test_source_text_files.py"}
    check(files, tmp_path, "test_source_text_files.py", "-k", "poison")


def check(files: dict[str, str], folder: Path, *words: str) -> None:
    """Write files, and run the tests among them."""
    for path, text in files.items():
        (folder / path).parent.mkdir(exist_ok=True)
        (folder / path).write_text(text, encoding="utf-8")
    options = ("-q", "-W", "error", "-c", "/dev/null", "--rootdir", str(folder), "-p", "no:cacheprovider")
    command = [sys.executable, "-m", "pytest", *options, *words]
    ran = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=100, check=False)
    assert ran.returncode == 0, ran.stdout
    assert " passed" in ran.stdout


def test_each_file_of_the_page_is_a_test_or_a_topology() -> None:
    """A block without a name would not be run."""
    assert len(FILES) == PAGE.count("```python")
    assert set(FILES) - set(TESTS) == {"topologies/words.py"}


def test_the_calls_of_the_page_exist() -> None:
    """The tables name methods; one that was renamed would be missing."""
    tables = PAGE[PAGE.index("## The sandbox") : PAGE.index("## Waiting")]
    first_cells = re.findall(r"^\| (`[^|]*) \|", tables, re.MULTILINE)
    named = {name for cell in first_cells for name in re.findall(r"`(\w+)", cell)}
    fields = {*Sandbox.__dataclass_fields__, *HeronRun.__dataclass_fields__}
    assert named <= {*dir(Sandbox), *dir(HeronRun), *fields}
    assert len(named) > 20
