"""Finds the files of the author's program, which make up its package.

The program is FILE and every module that it imports from FILE's folder, or from a folder of PYTHONPATH that contains
FILE's folder. This includes the modules that are imported now, and those that import statements in them name, as
functions may import later. A module of a package brings the whole package, data files included.

Modules in site-packages, in the folders of the interpreter, or elsewhere must be installed in every container.

The package keeps the layout that the imports need. A program in ``ROOT/a/b/topology.py`` that imports ``a.c`` through
``PYTHONPATH=ROOT`` is packed relative to ROOT, with two folders for `sys.path`: ``a/b`` and ROOT itself.
"""

from __future__ import annotations

import ast
import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

__all__ = ["Program", "find_program", "import_folders", "is_part"]

_INSTALLED = {"site-packages", "dist-packages", "__pycache__"}


@dataclass(frozen=True, slots=True)
class Program:
    """The files of a program and its `sys.path`, relative to the folder `root`. FILE's folder is the first path."""

    root: Path
    files: tuple[str, ...]
    import_paths: tuple[str, ...]


def import_folders(path: Path, more: Sequence[Path] = ()) -> tuple[Path, ...]:
    """Return the folders that the modules of the program at `path` come from: its own, `more`, then of PYTHONPATH."""
    entries = [Path(each).resolve() for each in os.environ.get("PYTHONPATH", "").split(os.pathsep) if each]
    return tuple(dict.fromkeys([path.parent, *more, *(each for each in entries if each in path.parents)]))


def is_part(source: Path, folders: Iterable[Path]) -> bool:
    """Return whether a file below one of the folders belongs to the program, and is not installed."""
    return any(_is_below(each, folder) for folder in folders for each in (source, source.resolve()))


def find_program(path: Path, modules: Iterable[ModuleType], more_folders: Sequence[Path] = ()) -> Program:
    """Return the program of the file at `path`; `modules` are those that loading the file imported.

    All files below `more_folders` belong to it: a compat plugin has named them.
    """
    folders = import_folders(path, more_folders)
    found: set[_Source] = set()
    waiting = {_Source(path, path.parent), *_loaded(modules, folders)}
    waiting.update(_Source(each, folder) for folder in more_folders for each in _files(folder))
    while waiting:
        source = waiting.pop()
        found.add(source)
        waiting.update(_whole(source))
        if source.file.suffix == ".py":
            waiting.update(_imported(source, folders))
        waiting -= found
    used = {each.home for each in found}
    root = Path(os.path.commonpath(used))
    return Program(
        root,
        tuple(sorted({each.file.relative_to(root).as_posix() for each in found})),
        tuple(each.relative_to(root).as_posix() for each in folders if each in used),
    )


class _Source(NamedTuple):
    """A file of the program, and the import folder that its module name is relative to."""

    file: Path
    home: Path


def _loaded(modules: Iterable[ModuleType], folders: Sequence[Path]) -> Iterator[_Source]:
    for module in modules:
        name = getattr(module, "__name__", "")
        file = getattr(module, "__file__", None)
        if not file or name.partition(".")[0] == "heron":
            continue
        for source in (Path(file), Path(file).resolve()):
            home = next((each for each in folders if source in _candidates(each, name)), folders[0])
            if source.is_file() and _is_below(source, home):
                yield _Source(source, home)
                break


def _is_below(source: Path, folder: Path) -> bool:
    if not source.is_relative_to(folder) or _INSTALLED.intersection(source.relative_to(folder).parts):
        return False
    inner = [Path(each) for each in (sys.prefix, sys.base_prefix) if folder in Path(each).parents]
    return not any(source.is_relative_to(prefix) for prefix in inner)


def _whole(source: _Source) -> Iterator[_Source]:
    """Yield all files of the topmost package that the file is in."""
    top: Path | None = None
    for folder in source.file.parents:
        if folder == source.home or not (folder / "__init__.py").is_file():
            break
        top = folder
    for each in _files(top) if top else ():
        yield _Source(each, source.home)


def _files(folder: Path) -> Iterator[Path]:
    for each in sorted(folder.rglob("*")):
        hidden = any(part.startswith(".") or part in _INSTALLED for part in each.relative_to(folder).parts)
        if not hidden and each.suffix not in (".pyc", ".pyo") and each.is_file() and not each.is_symlink():
            yield each


def _imported(source: _Source, folders: Sequence[Path]) -> Iterator[_Source]:
    """Yield the files of the program that import statements of this one name."""
    try:
        tree = ast.parse(source.file.read_bytes())
    except (SyntaxError, ValueError):
        return  # a data file that only looks like Python: an import of it would have failed
    package = source.file.relative_to(source.home).parts[:-1]
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names = [each.name for each in node.names]
        elif isinstance(node, ast.ImportFrom):
            above = package[: len(package) + 1 - node.level] if node.level else ()
            module = ".".join([*above, *([node.module] if node.module else [])])
            names = [module, *(f"{module}.{each.name}" for each in node.names)]
        else:
            continue
        for name in names:
            yield from _located(name, folders)


def _located(name: str, folders: Sequence[Path]) -> Iterator[_Source]:
    """Yield the file of a module in the first folder that has it."""
    for folder in folders:
        files = [each for each in _candidates(folder, name) if each.is_file() and _is_below(each, folder)]
        if files:
            yield from (_Source(each, folder) for each in files)
            return


def _candidates(folder: Path, name: str) -> tuple[Path, ...]:
    """Return the paths that the module of that name may have below an import folder."""
    if not name or not all(name.split(".")):
        return ()
    base = folder.joinpath(*name.split("."))
    return base.with_name(base.name + ".py"), base / "__init__.py"
