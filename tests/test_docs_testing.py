"""The files of the page on testing are tests that pass."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from heron_testing.heron_run import HeronRun
from heron_testing.sandbox import Sandbox

PAGE = (Path(__file__).resolve().parents[1] / "docs" / "testing.md").read_text(encoding="utf-8")
FILE = re.compile(r"^```python\n# (\S+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
FILES = dict(FILE.findall(PAGE))
TESTS = [name for name in FILES if name.startswith("test_")]


@pytest.mark.matrix
def test_the_tests_of_the_page_pass(tmp_path: Path) -> None:
    """Readers begin with a copy of them."""
    for path, text in FILES.items():
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_text(text, encoding="utf-8")
    options = ("-q", "-W", "error", "-c", "/dev/null", "--rootdir", str(tmp_path), "-p", "no:cacheprovider")
    command = [sys.executable, "-m", "pytest", *options, *TESTS]
    ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=100, check=False)
    assert ran.returncode == 0, ran.stdout


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
