"""The abstract methods of a contract or suite as its source has them, so that what is written never lags behind it."""

from __future__ import annotations

import ast
import inspect
import sys
from collections.abc import Iterator
from dataclasses import dataclass

__all__ = ["AbstractMethod", "abstract_methods"]


@dataclass(frozen=True, slots=True)
class AbstractMethod:
    """One method to be written: its signature and docstring as text, indented as in a class."""

    name: str
    head: str
    imports: tuple[tuple[str, str], ...]
    """What the signature names and where each is from: module and name."""


def abstract_methods(base: type) -> tuple[AbstractMethod, ...]:
    """The abstract methods that `base` itself defines, in its order; inherited ones are not among them."""
    source = inspect.getsource(sys.modules[base.__module__])
    tree = ast.parse(source)
    lines = source.splitlines()
    origins = _origins(tree, base.__module__)
    return tuple(
        AbstractMethod(node.name, _head(node, lines), tuple(sorted(_imports(node, origins))))
        for each in tree.body
        if isinstance(each, ast.ClassDef) and each.name == base.__name__
        for node in each.body
        if isinstance(node, ast.FunctionDef) and _is_abstract(node)
    )


def _is_abstract(node: ast.FunctionDef) -> bool:
    return any(isinstance(each, ast.Name) and each.id == "abstractmethod" for each in node.decorator_list)


def _head(node: ast.FunctionDef, lines: list[str]) -> str:
    documented = bool(ast.get_docstring(node))
    last = node.body[0].end_lineno if documented else node.body[0].lineno - 1
    return "\n".join(lines[node.lineno - 1 : last])


def _origins(tree: ast.Module, module: str) -> dict[str, str]:
    """Where each name of a module is from: another module, or itself."""
    found = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            found.update({each.asname or each.name: node.module for each in node.names})
    for node in tree.body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef):
            found[node.name] = module
        elif isinstance(node, ast.Assign):
            found.update({each.id: module for each in node.targets if isinstance(each, ast.Name)})
    return found


def _imports(node: ast.FunctionDef, origins: dict[str, str]) -> Iterator[tuple[str, str]]:
    for part in (node.args, node.returns):
        for each in ast.walk(part) if part else ():
            if isinstance(each, ast.Name) and each.id in origins:
                yield origins[each.id], each.id
