"""Finds the compat plugin of a program before it is loaded: by its suffix, or by what its file imports.

A foreign package may be installed itself, so the plugin does not install a package of that name; see
`heron.spi.compat`. The catalog takes long to import, and the metadata of all distributions takes long to read. So only
a program that imports something else than Python, Heron and the modules beside it pays for the search.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import cast

from heron.driver_kit.loading import load_object
from heron.errors import PluginError
from heron.spi.compat import CompatFormat, CompatPackage

__all__ = ["PYTHON_SUFFIX", "compat_format", "compat_package"]

PYTHON_SUFFIX = ".py"

_OWN = re.compile(r"heron(_\w+)?")


def compat_package(path: Path) -> str | None:
    """Return the entry ``module:Class`` of the installed plugin that serves a package to a program, or None."""
    imported = _imported(path)
    if not imported:
        return None
    for entry, plugin in _plugins():
        if issubclass(plugin, CompatPackage) and plugin.is_used_by(path, imported):
            return entry
    return None


def compat_format(path: Path) -> type[CompatFormat] | None:
    """Return the installed plugin that makes a Python program of the file at `path`, or None."""
    if path.suffix == PYTHON_SUFFIX:
        return None
    for _, plugin in _plugins():
        if issubclass(plugin, CompatFormat) and path.suffix.lower() == plugin.suffix:
            return plugin
    return None


def _plugins() -> Iterator[tuple[str, type]]:
    entries = cast("Callable[[], dict[str, str]]", load_object("heron_cli.catalog.compat_entries:compat_entries"))
    for _, entry in sorted(entries().items()):
        try:
            found = load_object(entry, "compat plugin")
        except PluginError:  # `heron plugins list` shows it; it concerns no other program
            continue
        if isinstance(found, type):
            yield entry, found


def _imported(path: Path) -> frozenset[str]:
    """Return the foreign packages that the file imports, also through modules beside it."""
    found: set[str] = set()
    files, seen = [path], {path}
    while files:
        for name in _imports(files.pop()) - found - sys.stdlib_module_names:
            beside = path.with_name(f"{name}{PYTHON_SUFFIX}")
            if beside in seen or _OWN.fullmatch(name):
                continue
            if beside.is_file():
                files.append(beside)
                seen.add(beside)
            else:
                found.add(name)
    return frozenset(found)


def _imports(path: Path) -> set[str]:
    """Return the first parts of the modules that import statements of a file name; none if it is not Python."""
    try:
        tree = ast.parse(path.read_bytes())
    except (SyntaxError, ValueError):  # the load of the file shows the mistake
        return set()
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names.update(each.name.partition(".")[0] for each in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names.add(node.module.partition(".")[0])
    return names
