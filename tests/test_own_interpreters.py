"""The interpreters that Heron starts import nothing from the folder in which a command was given."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
SOURCES = ("heron-core/src", "plugins/*/src")
TESTING = {"testing", "testing-servers"}


@pytest.mark.matrix
def test_every_interpreter_is_started_without_the_present_folder() -> None:
    """With `-m` and `-c`, Python imports from the present folder first, and other users may write into that one.

    `-P` and `-I` leave the present folder out. The command line has one, or a constant that the command line unpacks.
    """
    found = list(_command_lines())
    assert len(found) >= 8, "the search finds the command lines no more"
    safe = ("'-P'", "'-I'", "*_OPTIONS")
    assert [place for place, second in found if not second.startswith(safe)] == []
    assert '_OPTIONS = ["-P", "-m"]' in (ROOT / "heron-core/src/heron/driver_kit/fork_server.py").read_text()


def _command_lines() -> Iterator[tuple[str, str]]:
    """Each list or tuple that begins with the interpreter: its place, and its second word."""
    for path in sorted(each for source in SOURCES for each in ROOT.glob(f"{source}/**/*.py")):
        if TESTING & set(path.relative_to(ROOT).parts[:2]):
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            words = node.elts if isinstance(node, ast.List | ast.Tuple) else []
            if len(words) > 1 and "sys.executable" in ast.unparse(words[0]):
                yield f"{path.relative_to(ROOT)}:{words[0].lineno}", ast.unparse(words[1])
