"""Contract suites skip cases only because of a capability flag, so a green suite shows every declared ability."""

from __future__ import annotations

import ast
import dataclasses
import sys
from functools import cache
from pathlib import Path

import pytest

import heron_testing.contracts
from heron.spi.driver import Driver
from heron.spi.families import FAMILIES
from heron_testing.contracts.driver import ASKED
from heron_testing.faults import Faults

SUITES = sorted(Path(heron_testing.contracts.__path__[0]).rglob("*.py"))
SKIPS = {"skip", "skipif", "importorskip"}


@cache
def tree_of(suite: Path) -> ast.Module:
    """Return the syntax tree of a suite."""
    return ast.parse(suite.read_text())


@pytest.mark.parametrize("suite", SUITES, ids=lambda path: path.stem)
def test_only_requires_skips(suite: Path) -> None:
    """A case that is skipped for another reason is a clause of the contract that no driver fulfils."""
    tree = tree_of(suite)
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
def test_flags_that_skip_are_flags_of_a_family(suite: Path) -> None:
    """A misspelt flag would skip its case for every driver."""
    flags = {flag for base in FAMILIES.values() for flag in capabilities_of(base)}
    asked = [
        argument.value
        for node in ast.walk(tree_of(suite))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "requires"
        for argument in node.args[1:]
        if isinstance(argument, ast.Constant)
    ]
    assert set(asked) <= flags


def test_every_fault_is_asked_for_by_a_flag_of_a_family() -> None:
    """No suite would test a fault without a flag."""
    flags = {flag for base in FAMILIES.values() for flag in capabilities_of(base)}
    assert {field.name for field in dataclasses.fields(Faults)} == set(ASKED)
    assert {flag for asking in ASKED.values() for flag in asking} <= flags


def capabilities_of(base: type[Driver]) -> frozenset[str]:
    """Return the flags of a family; packing has no flags."""
    found: frozenset[str] = getattr(sys.modules[base.__module__], "CAPABILITIES", frozenset())
    return found


@pytest.mark.parametrize("suite", SUITES, ids=lambda path: path.stem)
def test_every_xfail_has_a_reason(suite: Path) -> None:
    """An expected failure without a reason stays for ever."""
    calls = [node for node in ast.walk(tree_of(suite)) if isinstance(node, ast.Attribute)]
    named = [node for node in ast.walk(tree_of(suite)) if isinstance(node, ast.Call)]
    reasons = [
        node
        for node in named
        if isinstance(node.func, ast.Attribute)
        and node.func.attr == "xfail"
        and any(keyword.arg == "reason" for keyword in node.keywords)
    ]
    assert len(reasons) == len([node for node in calls if node.attr == "xfail"])
