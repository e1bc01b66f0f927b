"""What the text of one Python file refers to, found without running it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from verify.runtime_code import READS_SOURCE, code_digest, drop_unread, used_names

__all__ = ["SourceFacts", "source_facts"]

_DOTTED = re.compile(r"[A-Za-z_]\w*(?:\.\w+)*")
_VALUE = "\0"  # what is filled in at run time
_FILLED_IN = re.compile(rf"[A-Za-z_]\w*(?:\.[\w{_VALUE}]+)+")
_ROOT = "ROOT"  # as tests name the folder of the repository
_FINDS_PROGRAM = {"which", "with_name"}
_FINDS_FIXTURE = {"getfixturevalue", "usefixtures"}


@dataclass(frozen=True, slots=True)
class SourceFacts:
    """Names as the text has them. The reader of the facts decides which are modules, files or fixtures."""

    imports: set[str] = field(default_factory=set)
    """Dotted names; relative names begin with a dot for each level. ``from a import b`` gives ``a`` and ``a.b``."""
    words: set[str] = field(default_factory=set)
    """Names and dotted names in strings other than docstrings."""
    patterns: set[str] = field(default_factory=set)
    """Regular expressions for dotted names: ``a\\.\\w+\\.b`` for ``f"a.{x}.b"``."""
    paths: set[str] = field(default_factory=set)
    """Printable strings; of ``x / "a" / "b"`` only ``a/b``, and ``/a/b`` when ``x`` is `ROOT`."""
    programs: set[str] = field(default_factory=set)
    """Names of files looked for beside an interpreter or on the PATH, ends of paths, first words of lists."""
    arguments: set[str] = field(default_factory=set)
    """Names of the parameters of tests and fixtures, and names of fixtures that calls ask for."""
    fixtures: set[str] = field(default_factory=set)
    """Names in the tuple ``FIXTURES`` of a module with a server: the fixtures that serve it."""
    marks: set[str] = field(default_factory=set)
    """Names of pytest marks."""
    tests: list[set[str]] = field(default_factory=list)
    """The marks of each test function, also from its class and its module."""
    reads_source: bool = False
    """Whether the file may read docstrings, comments or lines of other files."""
    code: str = ""
    """The digest of what of the file can change a result."""


def source_facts(text: str) -> SourceFacts:
    """The facts of a Python file.

    Raises:
        SyntaxError: when the text is not Python.
    """
    tree = ast.parse(text)
    names = used_names(tree)
    drop_unread(tree, names)
    facts = _Reader().read(tree)
    return replace(facts, reads_source=not names.isdisjoint(READS_SOURCE), code=code_digest(tree))


class _Reader:
    def __init__(self) -> None:
        self._facts = SourceFacts()
        self._in_chain: set[ast.expr] = set()
        self._asks_by_value = False

    def read(self, tree: ast.Module) -> SourceFacts:
        for node in _without_docstrings(tree):
            self._note_import(node)
            self._note_text(node)
            self._note_function(node)
        self._note_tests(tree.body, _marks_of_module(tree))
        if self._asks_by_value:  # for any fixture that the file names
            self._facts.arguments.update(self._facts.words)
        return self._facts

    def _note_import(self, node: ast.AST) -> None:
        match node:
            case ast.Import(names=names):
                self._facts.imports.update(each.name for each in names)
            case ast.ImportFrom(module=module, names=names, level=level):
                base = "." * level + (module or "")
                self._facts.imports.add(base)
                self._facts.imports.update(f"{base}{'.' if module else ''}{each.name}" for each in names)

    def _note_text(self, node: ast.AST) -> None:
        match node:
            case ast.Constant(value=str(value)):
                self._facts.words.update(_DOTTED.findall(value))
                if node not in self._in_chain and value.isprintable():
                    self._facts.paths.add(value)
            case ast.JoinedStr(values=parts):
                text = "".join(str(each.value) if isinstance(each, ast.Constant) else _VALUE for each in parts)
                filled_in = [each for each in _FILLED_IN.findall(text) if _VALUE in each]
                self._facts.patterns.update(re.escape(each).replace(re.escape(_VALUE), r"\w+") for each in filled_in)
            case ast.BinOp(op=ast.Div()) if node not in self._in_chain:
                path = self._constant_end(node)
                self._facts.paths.add(path)
                self._facts.programs.add(path.rpartition("/")[2])
            case ast.List(elts=[first, *_]):
                self._facts.programs.update(_strings([first]))

    def _note_tests(self, body: list[ast.stmt], marks: set[str]) -> None:
        for node in body:
            if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                own = marks.union(*map(_marks, node.decorator_list))
                if isinstance(node, ast.ClassDef):
                    self._note_tests(node.body, own)
                elif node.name.startswith("test"):
                    self._facts.tests.append(own)

    def _constant_end(self, node: ast.expr) -> str:
        """``b/c`` of ``a / "b" / "c"``; all parts of the chain are marked as seen."""
        self._in_chain.add(node)
        match node:
            case ast.Constant(value=str(value)) if value.isprintable():
                return value
            case ast.BinOp(op=ast.Div(), left=left, right=right):
                before, after = self._constant_end(left), self._constant_end(right)
                at_root = isinstance(left, ast.Name) and left.id == _ROOT
                return f"{before}/{after}" if at_root or (before and after) else after
        return ""

    def _note_function(self, node: ast.AST) -> None:
        match node:
            case ast.Assign(targets=[ast.Name(id="FIXTURES")], value=ast.Tuple(elts=names)):
                self._facts.fixtures.update(_strings(names))
            case ast.FunctionDef(args=args) | ast.AsyncFunctionDef(args=args) if _asks_for_fixtures(node):
                self._facts.arguments.update(each.arg for each in (*args.posonlyargs, *args.args, *args.kwonlyargs))
            case ast.Attribute(value=ast.Attribute(attr="mark"), attr=name):
                self._facts.marks.add(name)
            case ast.Call(func=function, args=arguments):
                named = _strings(arguments)
                if _last_name(function) in _FINDS_PROGRAM:
                    self._facts.programs.update(named)
                if _last_name(function) in _FINDS_FIXTURE:
                    self._facts.arguments.update(named)
                    self._asks_by_value |= len(named) < len(arguments)


def _asks_for_fixtures(function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Other functions are handed what they take: by a test or a fixture that asks for it."""
    decorators = [each.func if isinstance(each, ast.Call) else each for each in function.decorator_list]
    return function.name.startswith("test") or "fixture" in map(_last_name, decorators)


def _marks_of_module(tree: ast.Module) -> set[str]:
    values = [each.value for each in tree.body if isinstance(each, ast.Assign) and _assigns(each, "pytestmark")]
    return set().union(*map(_marks, values))


def _assigns(node: ast.Assign, name: str) -> bool:
    return any(isinstance(each, ast.Name) and each.id == name for each in node.targets)


def _marks(node: ast.AST) -> set[str]:
    """The marks that a decorator or a value of ``pytestmark`` gives to the whole of what it marks."""
    match node:
        case ast.List(elts=each) | ast.Tuple(elts=each):
            return set().union(*map(_marks, each))
        case ast.Call(func=function):
            return _marks(function)
        case ast.Attribute(value=ast.Attribute(attr="mark"), attr=name):
            return {name}
    return set()


def _without_docstrings(node: ast.AST) -> Iterator[ast.AST]:
    yield node
    for child in ast.iter_child_nodes(node):
        if not (isinstance(child, ast.Expr) and isinstance(child.value, ast.Constant)):
            yield from _without_docstrings(child)


def _strings(nodes: list[ast.expr]) -> list[str]:
    values = [each.value for each in nodes if isinstance(each, ast.Constant)]
    return [value for value in values if isinstance(value, str) and value.isprintable()]


def _last_name(node: ast.expr) -> str:
    match node:
        case ast.Call(func=function):
            return _last_name(function)
        case ast.Attribute(attr=name) | ast.Name(id=name):
            return name
    return ""
