"""The methods of a contract, of a suite or of `HookSpecs`, read from its source.

So the text in a new plugin is always that of the installed contract.
"""

from __future__ import annotations

import ast
import inspect
import sys
from collections.abc import Iterator
from dataclasses import dataclass

from heron.spi.hooks import HOOK_NAMES, HookSpecs

__all__ = ["ContractMethod", "abstract_methods", "hook_methods"]


@dataclass(frozen=True, slots=True)
class ContractMethod:
    """One method for the author to write."""

    name: str
    head: str
    """Its signature and docstring as text, indented as in a class."""
    parameters: tuple[str, ...]
    """The names of its parameters after `self`, in order."""
    imports: tuple[tuple[str, str], ...]
    """The module and name of each name in the signature."""


def abstract_methods(base: type) -> tuple[ContractMethod, ...]:
    """Return the abstract methods that `base` itself defines, without inherited ones, in the order of its source."""
    return tuple(method for node, method in _methods(base) if _is_abstract(node))


def hook_methods() -> tuple[ContractMethod, ...]:
    """Return one method for each hook of `HookSpecs`, in the order of its source."""
    return tuple(method for _, method in _methods(HookSpecs) if method.name in HOOK_NAMES)


def _methods(base: type) -> Iterator[tuple[ast.FunctionDef, ContractMethod]]:
    source = inspect.getsource(sys.modules[base.__module__])
    tree = ast.parse(source)
    lines = source.splitlines()
    origins = _origins(tree, base.__module__)
    for each in tree.body:
        if not isinstance(each, ast.ClassDef) or each.name != base.__name__:
            continue
        for node in each.body:
            if isinstance(node, ast.FunctionDef):
                parameters = tuple(parameter.arg for parameter in node.args.args[1:])
                imports = tuple(sorted(_imports(node, origins)))
                yield node, ContractMethod(node.name, _head(node, lines), parameters, imports)


def _is_abstract(node: ast.FunctionDef) -> bool:
    return any(isinstance(each, ast.Name) and each.id == "abstractmethod" for each in node.decorator_list)


def _head(node: ast.FunctionDef, lines: list[str]) -> str:
    documented = bool(ast.get_docstring(node))
    last = node.body[0].end_lineno if documented else node.body[0].lineno - 1
    return "\n".join(lines[node.lineno - 1 : last])


def _origins(tree: ast.Module, module: str) -> dict[str, str]:
    """Return for each name of a module the module that it comes from, which can be the module itself."""
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
