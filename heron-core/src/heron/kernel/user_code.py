"""Loads the author's file, in the command and in every instance in the same way.

The file becomes a module under its own name, also where it was started as a script, so that a class has one name in
every process and what is pickled in one loads in another. Its ``if __name__ == "__main__"`` block is no part of that
module: it runs afterwards, inside it, and only where the topology is wanted (`UserCode.run_main_block`). Whatever the
file submits meanwhile is captured.
"""

from __future__ import annotations

import ast
import importlib
import keyword
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib.machinery import ModuleSpec, SourceFileLoader
from importlib.util import module_from_spec
from pathlib import Path
from types import ModuleType

from heron.api.capture import TopologySource, capture_topologies
from heron.errors import UsageError
from heron.kernel.origin import OriginLoader, show_origin

__all__ = ["UserCode", "check_module_name", "load_class", "load_module", "load_user_code"]

_TAKEN = ("heron", "__main__")


@dataclass(slots=True)
class UserCode:
    """The author's module, and the builders and Topology classes that it submitted so far, in order."""

    module: ModuleType
    path: Path
    captured: list[TopologySource] = field(default_factory=list)
    ran_main_block: bool = False

    def run_main_block(self) -> bool:
        """Runs the file's ``if __name__ == "__main__"`` blocks, once; whether there are any."""
        if self.ran_main_block:
            return True
        tree = ast.parse(self.path.read_bytes(), str(self.path))
        blocks = [each for each in tree.body if isinstance(each, ast.If) and _asks_for_main(each.test)]
        if not blocks:
            return False
        self.ran_main_block = True
        futures = [each for each in tree.body if isinstance(each, ast.ImportFrom) and each.module == "__future__"]
        code = compile(ast.Module([*futures, *blocks], []), str(self.path), "exec", dont_inherit=True)
        names = vars(self.module)
        names["__name__"] = "__main__"
        try:
            with capture_topologies() as captured:
                exec(code, names)  # noqa: S102 - running the author's program is what this is for
        finally:
            names["__name__"] = self.path.stem
            self.captured += captured
        return True


def load_user_code(path: Path, argv: Sequence[str], origin: str = "") -> UserCode:
    """Loads the file at `path` as the module of its stem, with `argv` as its program arguments.

    With `origin`, tracebacks show that folder instead of the file's own, for it and for what it imports from there.
    ``__main__`` becomes an alias of it: a class that was pickled as ``__main__.Word`` is found there.

    Raises:
        UsageError: when the file's name cannot be a module's.
        BaseException: whatever the file raises.
    """
    check_module_name(path)
    sys.argv[:] = [str(path), *argv]
    sys.path.insert(0, str(path.parent))
    loader = SourceFileLoader(path.stem, str(path))
    if origin and Path(origin) != path.parent:
        show_origin(path.parent, Path(origin))
        loader = OriginLoader(path.stem, str(path), path.parent, Path(origin))
    module = module_from_spec(ModuleSpec(path.stem, loader, origin=str(path)))
    module.__file__ = str(path)
    code = UserCode(module, path)
    sys.modules[path.stem] = module
    sys.modules["__main__"] = module
    with capture_topologies() as captured:
        loader.exec_module(module)
    code.captured += captured
    return code


def load_module(package_dir: Path, module: str, argv: Sequence[str]) -> ModuleType:
    """The author's module from an unpacked package; what an instance calls."""
    return load_user_code(package_dir / f"{module}.py", argv).module


def load_class(entry: str) -> type:
    """The class named ``module:Class`` (or ``module:Outer.Class``), after `load_module`.

    Raises:
        UsageError: when the module has no such class; says where a class must stand.
    """
    module_name, _, path = entry.partition(":")
    found: object = importlib.import_module(module_name)
    for part in path.split("."):
        found = getattr(found, part, None)
    if not isinstance(found, type):
        msg = (
            f"{entry}: module {module_name!r} has no class {path!r}; define it at the top level of the module, "
            'outside of functions and of the `if __name__ == "__main__"` block'
        )
        raise UsageError(msg)
    return found


def check_module_name(path: Path) -> None:
    """Refuses a file whose stem cannot name its module in every process.

    Raises:
        UsageError: when it is no module's name, or hides a module of Python or of Heron.
    """
    name = path.stem
    if name in sys.stdlib_module_names or name in _TAKEN:
        reason = f"would hide the module {name!r}"
    elif path.suffix != ".py" or not name.isidentifier() or keyword.iskeyword(name):
        reason = "is not that of a module: letters, digits and '_', then .py"
    else:
        return
    msg = f"{path}: the file's name {reason}; rename it"
    raise UsageError(msg)


def _asks_for_main(test: ast.expr) -> bool:
    nodes = list(ast.walk(test))
    return any(isinstance(each, ast.Name) and each.id == "__name__" for each in nodes) and any(
        isinstance(each, ast.Constant) and each.value == "__main__" for each in nodes
    )
