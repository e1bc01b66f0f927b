"""The modules that docs/plugins.md publishes: they import, and third-party drivers need no others."""

from __future__ import annotations

import ast
import importlib
import pkgutil
import re
import sys
import warnings
from pathlib import Path

import pytest

from heron.moved_modules import MOVED

ROOT = Path(__file__).resolve().parents[1]
FROZEN = ROOT / "tests" / "frozen_drivers"
PAGE = (ROOT / "docs" / "plugins.md").read_text(encoding="utf-8")
NAMES = sorted(each.parent.name for each in FROZEN.glob("*/pyproject.toml"))


def named_in(title: str) -> set[str]:
    """The modules and packages that a section of the page names, also with ``.*``."""
    (text,) = re.findall(rf"^## {title}\n(.*?)\n## ", PAGE, re.DOTALL | re.MULTILINE)
    return set(re.findall(r"`(heron(?:_[a-z0-9_]+|(?=\.))(?:\.[a-z0-9_]+)*)(?:\.\*)?`", text))


DRIVERS = named_in("What a plugin may import") - {"heron_testing"}  # which is for tests
TESTS = named_in("heron_testing")


def listed_modules() -> set[str]:
    """What the page promises of the core: each module of the table, and those of its packages."""
    found = {each for each in DRIVERS if each.startswith("heron.")}
    for name in list(found):
        folders = getattr(importlib.import_module(name), "__path__", ())
        found |= {f"{name}.{each.name}" for each in pkgutil.iter_modules(folders) if not each.name.startswith("_")}
    return found


def imports(path: Path) -> set[str]:
    """The modules of Heron that a file imports."""
    nodes = list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))
    whole = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    found = whole | {node.module for node in nodes if isinstance(node, ast.ImportFrom) and node.module}
    own = {each.stem for each in path.parent.glob("*.py")}
    return {each for each in found - own if re.match(r"heron\b|heron_", each)}


def is_within(module: str, allowed: set[str]) -> bool:
    parts = module.split(".")
    return any(".".join(parts[:count]) in allowed for count in range(1, len(parts) + 1))


@pytest.mark.parametrize("name", NAMES)
def test_a_frozen_driver_imports_only_what_is_published(name: str) -> None:
    """Other modules have no promise, so a driver that imports one would show nothing."""
    for path in (FROZEN / name).glob("*.py"):
        allowed = DRIVERS | MOVED.keys() | (TESTS if path.name == "suite.py" else set())
        assert [each for each in imports(path) if not is_within(each, allowed)] == [], path


def test_the_page_names_each_path_that_moved() -> None:
    """The author of a driver for the former paths looks there."""
    assert set(MOVED) <= set((FROZEN / "modules").read_text(encoding="utf-8").split())
    rows = re.findall(r"^\| (`heron\.\w+\.\w+`[^|]*) \| `(heron_\w+_kit)` \|$", PAGE, re.MULTILINE)
    named: dict[str, str] = {}
    for former, kit in rows:
        package = ""
        for parent, name in re.findall(r"`(heron\.\w+)?\.(\w+)`", former):
            package = parent or package
            named[f"{package}.{name}"] = f"{kit}.{name}"
    assert named == dict(MOVED)


def test_a_module_that_was_published_imports_at_its_path() -> None:
    """A module that leaves the list stays at its old path for one number of the contracts, and warns."""
    promised = set((FROZEN / "modules").read_text(encoding="utf-8").split())
    listed = listed_modules()
    assert listed <= promised, f"add to tests/frozen_drivers/modules: {sorted(listed - promised)}"
    for name in promised - listed:
        sys.modules.pop(name, None)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            former = importlib.import_module(name)
        warned = [str(each.message) for each in caught if each.category is DeprecationWarning]
        assert warned == [f"{name} has moved to {MOVED[name]}"], f"{name} left the list of docs/plugins.md"
        present = importlib.import_module(MOVED[name])
        names = list(present.__all__)
        assert [getattr(former, each) is getattr(present, each) for each in names] == [True] * len(names), name
    for name in listed:
        importlib.import_module(name)
