"""Contract suites may be skipped only by a capability flag, so that a green suite means what it says."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import heron.testing.contracts

SUITES = sorted(Path(heron.testing.contracts.__path__[0]).glob("*.py"))
SKIPS = {"skip", "skipif", "importorskip"}


@pytest.mark.parametrize("suite", SUITES, ids=lambda path: path.stem)
def test_only_requires_skips(suite: Path) -> None:
    """A case that is skipped for any other reason is a clause of the contract that nobody keeps."""
    tree = ast.parse(suite.read_text())
    allowed = {
        node
        for function in ast.walk(tree)
        if isinstance(function, ast.FunctionDef) and function.name == "requires" and suite.stem == "driver"
        for node in ast.walk(function)
    }
    found = [
        f"{suite.name}:{node.lineno}"
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and node.attr in SKIPS and node not in allowed
    ]
    assert found == []


@pytest.mark.parametrize("suite", SUITES, ids=lambda path: path.stem)
def test_every_xfail_has_a_reason(suite: Path) -> None:
    """An expected failure without a reason is never mended."""
    calls = [node for node in ast.walk(ast.parse(suite.read_text())) if isinstance(node, ast.Attribute)]
    named = [node for node in ast.walk(ast.parse(suite.read_text())) if isinstance(node, ast.Call)]
    reasons = [
        node
        for node in named
        if isinstance(node.func, ast.Attribute)
        and node.func.attr == "xfail"
        and any(keyword.arg == "reason" for keyword in node.keywords)
    ]
    assert len(reasons) == len([node for node in calls if node.attr == "xfail"])
