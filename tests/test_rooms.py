"""The docstring of each room lists what is in it, and no modules of a package know each other, also not by name."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
WITH_ROOMS = (
    *("heron_cli", "heron_health_manager", "heron_scheduler_spark", "heron_service_tracker"),
    *("heron_testing/contracts", "heron_testing_servers"),
)
SOURCES = {name: next(ROOT.glob(f"plugins/*/src/{name}")) for name in WITH_ROOMS}
PACKAGES = sorted(path.parent for source in SOURCES.values() for path in source.rglob("__init__.py"))
PUBLIC = {"heron_cli/client", "heron_cli/profiles"}
"""The packages whose names other distributions import."""

WITH_FORMER_PATHS = {"heron_testing/contracts"}
"""The packages that serve the paths that their modules had before."""


def name_of(package: Path) -> str:
    """The path of a package below its folder of sources."""
    return package.as_posix().partition("/src/")[2]


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
    if name_of(package) in WITH_FORMER_PATHS:
        *code, last = (each for each in code if not isinstance(each, ast.Import | ast.ImportFrom))
        assert ast.unparse(last) == "sys.meta_path.append(MovedModules(MOVED))"
    allowed = (ast.ImportFrom, ast.Assign) if name_of(package) in PUBLIC else ()
    assert all(isinstance(each, allowed) for each in code)


def module_of(path: Path) -> str:
    """The name of the module of a file."""
    parts = Path(name_of(path)).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def known_by(path: Path) -> Iterator[str]:
    """The names that a file imports, and those that it loads as ``module:name``."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{each.name}" for each in node.names)
        elif isinstance(node, ast.Import):
            yield from (each.name for each in node.names)
        elif isinstance(node, ast.Constant) and (found := re.fullmatch(r"(heron_[\w.]+):\w+", str(node.value))):
            yield found[1]


def graph_of(source: Path) -> dict[str, set[str]]:
    """The modules that each module of a package knows."""
    files = {module_of(path): path for path in source.rglob("*.py")}
    return {name: {each for each in known_by(path) if each in files} for name, path in files.items()}


@pytest.mark.parametrize("name", WITH_ROOMS)
def test_no_modules_know_each_other_also_not_by_name(name: str) -> None:
    """A module that is loaded by name for speed is part of the order; import-linter sees only imports."""
    TopologicalSorter(graph_of(SOURCES[name])).prepare()  # raises CycleError, which names the circle


def test_a_module_that_is_loaded_by_name_is_known() -> None:
    """A search that finds no names would find no circle."""
    assert "heron_cli.launch.submission" in graph_of(SOURCES["heron_cli"])["heron_cli.client.client"]
