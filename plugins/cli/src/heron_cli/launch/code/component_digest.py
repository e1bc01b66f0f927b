"""Which code belongs to a component: a digest of the statements of its program that its class leads to. Pure.

A package has many components, and a change is mostly in one of them. A statement at the top of a module belongs to a
component if the component's class names it, directly or through other statements and modules of the package. Names
count, wherever they occur, so a statement belongs to too many components rather than to too few. Comments, empty lines
and the order of statements do not count. Some entries name no class at the top of a module of the package, such as an
object that is given as a custom grouping. All code of the package belongs to their components. All other files of the
package belong to each component.
"""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Iterator, Sequence
from pathlib import Path

from heron.api.definition import GroupingKind, TopologyDefinition
from heron.kernel.manifest import PackageManifest

__all__ = ["component_digests"]

_BUILDING = frozenset({"add_bolt", "add_spout", "build_and_submit", "set_config"})
"""Calls that describe the topology, and name all components: the definition has what they say."""


def component_digests(folder: Path, manifest: PackageManifest, topology: TopologyDefinition) -> dict[str, str]:
    """Return a digest of the code of each component, as the files of a package in `folder` have it."""
    program = _Program(folder, manifest)
    data = [f"{name} {digest}" for name, digest in manifest.files.items() if not name.endswith(".py")]
    found: dict[str, str] = {}
    for component in topology.components:
        read_by = (each for consumer in topology.components for each in consumer.inputs)
        custom = (each.grouping for each in read_by if each.component == component.name)
        placed_by = (each.entry for each in custom if each.kind is GroupingKind.CUSTOM)  # the emitting task uses it
        entries = [component.entry, *placed_by]
        parts = {part for entry in entries for part in program.code_of(entry)}
        text = "\0".join([*map(str, entries), *sorted(parts), *sorted(data)])
        found[component.name] = hashlib.sha256(text.encode()).hexdigest()
    return found


class _Program:
    def __init__(self, folder: Path, manifest: PackageManifest) -> None:
        self._folder = folder
        self._manifest = manifest
        self._modules: dict[str, _Module | None] = {}

    def code_of(self, entry: str | None) -> set[str]:
        """The statements that the class ``module:Class`` leads to; those of the whole package if it has no such."""
        name, _, path = (entry or "").partition(":")
        module = self._module(name)
        first = path.partition(".")[0]
        if module is None or first not in module.bound:
            return {f"{each} {digest}" for each, digest in self._manifest.files.items()}
        return self._reached([(name, first)])

    def _reached(self, waiting: list[tuple[str, str]]) -> set[str]:
        seen: set[tuple[str, str]] = set()
        parts: set[str] = set()
        while waiting:
            place = waiting.pop()
            module = self._module(place[0])
            if place in seen or module is None:
                continue
            seen.add(place)
            name, wanted = place
            if wanted and (name, "") not in seen:
                waiting.append((name, ""))  # what the import of the module does
            if wanted == "*":
                waiting.extend((name, each) for each in module.bound)
            for statement in module.bound.get(wanted, ()):
                parts.add(f"{name} {ast.dump(statement)}")
                waiting.extend(self._named(name, module, statement))
        return parts

    def _named(self, name: str, module: _Module, statement: ast.stmt) -> Iterator[tuple[str, str]]:
        for node in ast.walk(statement):
            if isinstance(node, ast.Name):
                yield name, node.id
            elif isinstance(node, ast.Import):
                yield from ((each.name, "*") for each in node.names)
            elif isinstance(node, ast.ImportFrom):
                source = module.absolute(node)
                for each in node.names:
                    yield source, each.name
                    yield f"{source}.{each.name}", "*"

    def _module(self, name: str) -> _Module | None:
        """A module of the package; None for another one, whose code is installed."""
        if name not in self._modules:
            self._modules[name] = self._read(name)
        return self._modules[name]

    def _read(self, name: str) -> _Module | None:
        if not name:
            return None
        relative = name.replace(".", "/")
        for place in self._manifest.import_paths:
            for end, is_package in ((".py", False), ("/__init__.py", True)):
                file = (Path(place) / f"{relative}{end}").as_posix()
                if file in self._manifest.files:
                    return _Module(name.split("."), (self._folder / file).read_bytes(), is_package=is_package)
        return None


class _Module:
    """The statements of a module by the names that they bind; those that bind none have the name ""."""

    def __init__(self, parts: Sequence[str], source: bytes, *, is_package: bool) -> None:
        self._package = list(parts if is_package else parts[:-1])
        self.bound: dict[str, list[ast.stmt]] = {}
        for statement in ast.parse(source).body:
            for name in _bound(statement):
                self.bound.setdefault(name, []).append(statement)

    def absolute(self, node: ast.ImportFrom) -> str:
        """The full name of the module that a statement imports from."""
        above = self._package[: len(self._package) + 1 - node.level] if node.level else []
        return ".".join([*above, *([node.module] if node.module else [])])


def _bound(statement: ast.stmt) -> set[str]:
    if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return {statement.name}
    if isinstance(statement, ast.Expr) and _says_nothing(statement.value):
        return set()
    if isinstance(statement, ast.If) and "__main__" in ast.dump(statement.test):
        return set()  # no task runs it
    names: set[str] = set()
    for node in ast.walk(statement):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.Import):
            names.update(each.asname or each.name.partition(".")[0] for each in node.names)
        elif isinstance(node, ast.ImportFrom):
            names.update("" if each.name == "*" else each.asname or each.name for each in node.names)
    return names or {""}


def _says_nothing(value: ast.expr) -> bool:
    """Whether it is a text, or a call that describes the topology."""
    if isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute):
        return value.func.attr in _BUILDING
    return isinstance(value, ast.Constant)
