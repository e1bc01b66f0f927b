"""Which files belong to the author's program, and so into its package.

The program is FILE and every module under FILE's folder that it imports: those that are imported now, and those that
an import statement in one of them names (functions may import later). A module of a package brings the whole package,
data files included. What lies in site-packages, in the interpreter's own folders or outside FILE's folder is taken to
be installed in every container.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import ModuleType

__all__ = ["first_party_files"]

_INSTALLED = {"site-packages", "dist-packages", "__pycache__"}


def first_party_files(path: Path, modules: Iterable[ModuleType]) -> tuple[str, ...]:
    """The files of the program at `path`, relative to its folder, sorted; `modules` are those that are loaded."""
    root = path.parent
    files = {path}
    waiting = [path]
    for module in modules:
        waiting += _sources(module, root)
    while waiting:
        source = waiting.pop()
        for each in _whole(source, root):
            if each == path or each not in files:
                files.add(each)
                if each.suffix == ".py":
                    waiting += [found for found in _imported(each, root) if found not in files]
    return tuple(sorted(each.relative_to(root).as_posix() for each in files))


def _sources(module: ModuleType, root: Path) -> Iterator[Path]:
    name = getattr(module, "__name__", "").partition(".")[0]
    file = getattr(module, "__file__", None)
    if not file or name == "heron":
        return
    source = Path(file)
    if source.is_file() and _ours(source, root):
        yield source


def _ours(source: Path, root: Path) -> bool:
    if not source.is_relative_to(root) or _INSTALLED.intersection(source.relative_to(root).parts):
        return False
    inner = [Path(each) for each in (sys.prefix, sys.base_prefix) if root in Path(each).parents]
    return not any(source.is_relative_to(prefix) for prefix in inner)


def _whole(source: Path, root: Path) -> Iterator[Path]:
    """The file, or all files of the topmost package under `root` that it is in."""
    top: Path | None = None
    for folder in source.parents:
        if folder == root or not (folder / "__init__.py").is_file():
            break
        top = folder
    if top is None:
        yield source
        return
    for each in sorted(top.rglob("*")):
        inside = each.relative_to(top).parts
        hidden = any(part.startswith(".") or part in _INSTALLED for part in inside)
        if not hidden and each.suffix not in (".pyc", ".pyo") and each.is_file() and not each.is_symlink():
            yield each


def _imported(source: Path, root: Path) -> Iterator[Path]:
    """The files under `root` that import statements of this one name."""
    try:
        tree = ast.parse(source.read_bytes())
    except (SyntaxError, ValueError):
        return  # never imported so far, or it would have failed; a data file that only looks like Python
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names = [each.name for each in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names = [node.module, *(f"{node.module}.{each.name}" for each in node.names)]
        else:
            continue
        for name in names:
            yield from _located(name, root)


def _located(name: str, root: Path) -> Iterator[Path]:
    base = root.joinpath(*name.split("."))
    for each in (base.with_name(base.name + ".py"), base / "__init__.py"):
        if each.is_file() and _ours(each, root):
            yield each
