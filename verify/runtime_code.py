"""What of a Python file can change a result: its syntax tree without comments, docstrings and annotations."""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Iterator

__all__ = ["READS_SOURCE", "code_digest", "drop_unread", "used_names"]

READS_SOURCE = frozenset({"__doc__", "ast", "getdoc", "getsource", "getsourcelines", "linecache"})
"""Names by which a program reads docstrings, or the text of sources."""
_READS_ANNOTATIONS = frozenset(
    {
        "__annotations__",
        "get_annotations",
        "get_type_hints",
        "getfullargspec",
        "signature",
        "singledispatch",
        "singledispatchmethod",
    }
)
_SHOWS_DOCSTRING = frozenset({"command", "group", "session"})  # of click and nox
_LEFT_OUT = frozenset({"kind", "type_comment", "ctx"})


def code_digest(tree: ast.Module) -> str:
    """SHA-256 of a tree from `drop_unread`, without positions; the same on each supported version of Python."""
    parts: list[str] = []
    _write(tree, parts)
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def drop_unread(tree: ast.Module, names: set[str]) -> None:
    """Removes from a tree that uses `names`, in place, what cannot change how the file runs.

    Docstrings stay where the file reads one, and on commands, whose help shows them. Annotations stay in the bodies of
    classes, which dataclasses read, in a file that reads annotations, and in a file that evaluates them because it has
    no ``from __future__ import annotations``; with them stays what the file imports for type checkers.
    """
    keeps_annotations = "annotations" not in _future(tree) or not names.isdisjoint(_READS_ANNOTATIONS)
    _Dropper(docstrings=names.isdisjoint(READS_SOURCE), annotations=not keeps_annotations).visit(tree)


def used_names(tree: ast.Module) -> set[str]:
    """All names, attributes, imported names and strings."""
    return {name for node in ast.walk(tree) for name in _names(node)}


class _Dropper(ast.NodeTransformer):
    def __init__(self, *, docstrings: bool, annotations: bool) -> None:
        self._docstrings = docstrings
        self._annotations = annotations
        self._in_class = False

    def visit_Expr(self, node: ast.Expr) -> ast.AST | None:
        return None if isinstance(node.value, ast.Constant) else self.generic_visit(node)

    def visit_Pass(self, _node: ast.Pass) -> None:
        return None

    def visit_Module(self, node: ast.Module) -> ast.AST:
        return self._with_docstring(node, in_class=False)

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        return self._with_docstring(node, in_class=True)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        return self._function(node)

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> ast.AST:
        return self._function(node)

    def visit_arg(self, node: ast.arg) -> ast.AST:
        if self._annotations:
            node.annotation = None
        return self.generic_visit(node)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        if not self._annotations or self._in_class:
            return self.generic_visit(node)
        if node.value is None:  # it still makes the name local
            node.annotation = ast.Constant(value=None)
            return self.generic_visit(node)
        return self.generic_visit(ast.Assign(targets=[node.target], value=node.value))

    def visit_If(self, node: ast.If) -> ast.AST | list[ast.stmt]:
        self.generic_visit(node)
        return node.orelse if self._annotations and _last_name(node.test) == "TYPE_CHECKING" else node

    def _function(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> ast.AST:
        if self._annotations:
            node.returns = None
        return self._with_docstring(node, in_class=False)

    def _with_docstring(
        self, node: ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef, *, in_class: bool
    ) -> ast.AST:
        shown = not isinstance(node, ast.Module) and any(
            _last_name(each) in _SHOWS_DOCSTRING for each in node.decorator_list
        )
        docstring = ast.get_docstring(node, clean=False) if shown or not self._docstrings else None
        around, self._in_class = self._in_class, in_class
        self.generic_visit(node)
        self._in_class = around
        if docstring is not None:
            node.body.insert(0, ast.Expr(value=ast.Constant(value=docstring)))
        return node


def _write(value: object, parts: list[str]) -> None:
    """Like `ast.dump`, without the fields that are empty: each version of Python adds some."""
    if isinstance(value, ast.Constant):
        parts.append(ascii(value.value))
    elif isinstance(value, ast.AST):
        parts.append(type(value).__name__)
        for name in value._fields:
            if name not in _LEFT_OUT and (field := getattr(value, name, None)) is not None and field != []:
                parts.append(name)
                _write(_joined(field) if isinstance(value, ast.JoinedStr) else field, parts)
        parts.append(")")
    elif isinstance(value, list):
        parts.append("[")
        for each in value:
            _write(each, parts)
        parts.append("]")
    else:
        parts.append(ascii(value))


def _joined(values: list[ast.expr]) -> list[object]:
    """The parts of an f-string; Python 3.12 divides its text in another way."""
    found: list[object] = []
    for each in values:
        if not (isinstance(each, ast.Constant) and isinstance(each.value, str)):
            found.append(each)
        elif found and isinstance(found[-1], str):
            found[-1] += each.value
        elif each.value:
            found.append(each.value)
    return found


def _names(node: ast.AST) -> Iterator[str]:
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name) | ast.Constant(value=str(name)):
            yield name
        case ast.alias(name=name):
            yield name


def _future(tree: ast.Module) -> set[str]:
    imports = [each for each in tree.body if isinstance(each, ast.ImportFrom) and each.module == "__future__"]
    return {alias.name for each in imports for alias in each.names}


def _last_name(node: ast.expr) -> str:
    match node:
        case ast.Call(func=function):
            return _last_name(function)
        case ast.Attribute(attr=name) | ast.Name(id=name):
            return name
    return ""
