"""Which files of the workspace a Python file needs, by its imports and by the names of modules in its strings."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Set
from pathlib import PurePosixPath

from verify.source_files import SourceFiles
from verify.workspace import Workspace

__all__ = ["ImportGraph"]


class ImportGraph:
    """Edges are found when a file is first asked for, and kept.

    An import counts wherever it appears, except below ``TYPE_CHECKING``. A dotted name in a string counts too, because
    entry points, role processes and ``python -m`` name modules that way. A package's ``__init__`` is an edge of whoever
    imports from the package.
    """

    def __init__(self, workspace: Workspace, sources: SourceFiles | None = None) -> None:
        self.facts = (sources or SourceFiles(workspace)).facts
        self._edges: dict[str, frozenset[str]] = {}
        self._modules: defaultdict[str, set[str]] = defaultdict(set)
        self._python_files = {path for path in workspace.files if path.endswith(".py")}
        roots = [f"{each.folder}/src" for each in workspace.distributions.values()]
        self._sources = {path for root in roots for path in workspace.below(root)}
        for root in (*roots, *workspace.python_path, ""):
            for path in self._python_files.intersection(workspace.below(root)):
                self._modules[_module_name(path, root)].add(path)
        self._installed = {name for name, paths in self._modules.items() if "." not in name and paths & self._sources}

    def reached(self, paths: Iterable[str], known: Set[str] = frozenset()) -> set[str]:
        """These files and all that they need, directly or in turn; `known` is such a set."""
        found = {*known, *paths}
        waiting = list(found - known)
        while waiting:
            new = self.needed(waiting.pop()) - found
            found |= new
            waiting += new
        return found

    def module(self, name: str) -> set[str]:
        """The files of a dotted name: of its longest part that is a module, and of the packages that hold it.

        Several files answer to a name that several test folders have.
        """
        parts = name.split(".")
        names = [".".join(parts[: count + 1]) for count in range(len(parts))]
        return set().union(*(self._modules[each] for each in names if each in self._modules))

    def needed(self, path: str) -> frozenset[str]:
        """The files that one file needs directly."""
        if path not in self._edges:
            self._edges[path] = frozenset(self._find_needed(path))
        return self._edges[path]

    def _find_needed(self, path: str) -> set[str]:
        facts = self.facts(path)
        found: set[str] = set()
        for name in facts.imports:
            found |= self._relative(path, name) if name.startswith(".") else self._absolute(path, name)
        for word in facts.words:
            # Outside the sources a string with a dot may name a module of the tests.
            if word.partition(".")[0] in self._installed or ("." in word and path not in self._sources):
                found |= self.module(word)
        for pattern in facts.patterns:
            if re.split(r"\W", pattern)[0] in self._installed:
                found |= set().union(*(self.module(name) for name in self._modules if re.fullmatch(pattern, name)))
        return found

    def _absolute(self, path: str, name: str) -> set[str]:
        """Outside the sources, a file's neighbours come first: ``conftest``, and modules beside a program."""
        if path in self._sources:
            return self.module(name)
        place = f"{path[: path.rfind('/') + 1]}{name.partition('.')[0]}"
        return ({f"{place}.py", f"{place}/__init__.py"} & self._python_files) or self.module(name)

    def _relative(self, path: str, name: str) -> set[str]:
        plain = name.lstrip(".")
        folder = PurePosixPath(path).parents[len(name) - len(plain) - 1]
        place = folder.joinpath(*plain.split("."))
        return {f"{place}.py", f"{place}/__init__.py", f"{folder}/__init__.py"} & self._python_files


def _module_name(path: str, root: str) -> str:
    inner = PurePosixPath(path).relative_to(root).with_suffix("")
    return ".".join(inner.parts[:-1] if inner.name == "__init__" else inner.parts)
