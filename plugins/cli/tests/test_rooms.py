"""The docstring of each package lists what is in it, so that a reader knows where to begin."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import heron_cli

ROOT = Path(heron_cli.__file__).parent
PACKAGES = sorted(path.parent for path in ROOT.rglob("__init__.py"))
PUBLIC = {"client", "profiles"}
"""The packages whose names other distributions import."""


def name_of(package: Path) -> str:
    """The path of a package below `heron_cli`."""
    return package.relative_to(ROOT).as_posix()


@pytest.mark.parametrize("package", PACKAGES, ids=name_of)
def test_a_package_names_all_its_files_and_rooms(package: Path) -> None:
    """A file that the order of reading leaves out is found by nobody."""
    tree = ast.parse((package / "__init__.py").read_text(encoding="utf-8"))
    inside = {path.stem for path in package.iterdir() if path.suffix == ".py" or (path / "__init__.py").is_file()}
    missing = {name for name in inside - {"__init__"} if f"`{name}`" not in (ast.get_docstring(tree) or "")}
    assert not missing


@pytest.mark.parametrize("package", PACKAGES, ids=name_of)
def test_a_package_has_no_code(package: Path) -> None:
    """Code in a package runs at the import of each of its modules; the public ones only name what others import."""
    _, *code = ast.parse((package / "__init__.py").read_text(encoding="utf-8")).body
    allowed = (ast.ImportFrom, ast.Assign) if name_of(package) in PUBLIC else ()
    assert all(isinstance(each, allowed) for each in code)
