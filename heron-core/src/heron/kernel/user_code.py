"""Loads the author's file in the same way in the command and in every instance.

The file becomes a module under its own name, never ``__main__``. A class therefore has one name in every process, and
a pickled object loads everywhere. The block ``if __name__ == "__main__"`` is not part of the module: it runs later, in
the namespace of the module, and only where the topology is needed (`UserCode.run_main_block`). Submissions of the file
are captured.

An instance loads the file from an unpacked package, which is deleted after the run. Its tracebacks show the paths that
the files had on the author's machine.
"""

from __future__ import annotations

import ast
import importlib
import keyword
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib import machinery
from importlib.util import module_from_spec
from pathlib import Path
from types import CodeType, ModuleType

from heron.api.capture import TopologySource, capture_topologies
from heron.driver_kit.loading import load_object
from heron.errors import PluginError, UsageError
from heron.kernel.manifest import PackageManifest
from heron.spi.compat import CompatPackage

__all__ = ["UserCode", "check_module_name", "load_class", "load_package", "load_user_code", "serve_package"]

_TAKEN = ("heron", "__main__")


@dataclass(slots=True)
class UserCode:
    """The author's module, and the builders and `Topology` classes that it has submitted so far, in order."""

    module: ModuleType
    path: Path
    captured: list[TopologySource] = field(default_factory=list)
    ran_main_block: bool = False

    def run_main_block(self) -> bool:
        """Run the blocks ``if __name__ == "__main__"`` of the file, once. Return whether the file has such a block."""
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
                exec(code, names)  # noqa: S102 - running the author's program is the purpose of this module
        finally:
            names["__name__"] = self.path.stem
            self.captured += captured
        return True


def load_user_code(path: Path, argv: Sequence[str], folders: Sequence[Path] = ()) -> UserCode:
    """Load the file at `path` as the module of its stem, with `argv` as its program arguments.

    It imports modules from its own folder, then from `folders`.
    ``__main__`` becomes an alias of the module, so that a class pickled as ``__main__.Word`` is found there.

    Raises:
        UsageError: when the name of the file cannot be the name of a module.
        BaseException: any exception of the file.
    """
    check_module_name(path)
    sys.path[:0] = [str(each) for each in (path.parent, *folders)]
    return _load(path, argv, machinery.SourceFileLoader(path.stem, str(path)))


def load_package(folder: Path, manifest: PackageManifest) -> UserCode:
    """Load the author's file from the package that was unpacked into `folder`, as `load_user_code` does.

    Raises:
        UsageError: when the name of the file cannot be the name of a module.
        BaseException: any exception of the file.
    """
    import_paths = [folder / each for each in manifest.import_paths]
    path = import_paths[0] / f"{manifest.module}.py"
    check_module_name(path)
    for entry in manifest.compat:
        serve_package(entry)
    sys.path[:0] = [str(each) for each in import_paths]
    loader = machinery.SourceFileLoader(path.stem, str(path))
    origin = Path(manifest.origin)
    if manifest.origin and origin != folder:
        _show_origin(folder, origin)
        loader = _OriginLoader(path.stem, str(path), folder, origin)
    return _load(path, manifest.argv, loader)


def load_class(entry: str) -> type:
    """Return the class named ``module:Class`` or ``module:Outer.Class``, after the author's file is loaded.

    Raises:
        UsageError: when the module has no such class; names the place where classes belong.
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


def serve_package(entry: str) -> type[CompatPackage]:
    """Make the foreign package of a compat plugin importable in this process; return the plugin's class.

    Raises:
        PluginError: when the plugin does not import, or is not a `CompatPackage`.
        HeronError: when another package of that name is imported already.
    """
    found = load_object(entry, "compat plugin")
    if not (isinstance(found, type) and issubclass(found, CompatPackage)):
        msg = f"compat plugin: {entry} is not a CompatPackage; upgrade the distribution that has it"
        raise PluginError(msg)
    found.serve()
    return found


def check_module_name(path: Path) -> None:
    """Refuse a file whose stem cannot name its module in every process.

    Raises:
        UsageError: when the stem is not a module name, or is the name of a module of Python or of Heron.
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


def _load(path: Path, argv: Sequence[str], loader: machinery.SourceFileLoader) -> UserCode:
    sys.argv[:] = [str(path), *argv]
    module = module_from_spec(machinery.ModuleSpec(path.stem, loader, origin=str(path)))
    module.__file__ = str(path)
    code = UserCode(module, path)
    sys.modules[path.stem] = module
    sys.modules["__main__"] = module
    with capture_topologies() as captured:
        loader.exec_module(module)
    code.captured += captured
    return code


def _asks_for_main(test: ast.expr) -> bool:
    nodes = list(ast.walk(test))
    return any(isinstance(each, ast.Name) and each.id == "__name__" for each in nodes) and any(
        isinstance(each, ast.Constant) and each.value == "__main__" for each in nodes
    )


class _OriginLoader(machinery.SourceFileLoader):
    """Compiles a file of `folder` with its path in `origin`. Bytecode is not cached, as it would keep that path."""

    def __init__(self, name: str, path: str, folder: Path, origin: Path) -> None:
        super().__init__(name, path)
        self._shown = str(origin / Path(path).relative_to(folder))

    def get_code(self, fullname: str) -> CodeType:
        """Return the code. Where the origin does not exist, tracebacks take the source lines from this loader."""
        code: CodeType = compile(self.get_data(self.get_filename(fullname)), self._shown, "exec", dont_inherit=True)
        return code


def _show_origin(folder: Path, origin: Path) -> None:
    """Make tracebacks of this process show files below `folder` with their paths below `origin`."""

    def loader(name: str, path: str) -> _OriginLoader:
        return _OriginLoader(name, path, folder, origin)

    def finder(path: str) -> machinery.FileFinder:
        if not Path(path).is_relative_to(folder):
            raise ImportError(path)  # another hook is responsible
        extensions = (machinery.ExtensionFileLoader, machinery.EXTENSION_SUFFIXES)
        return machinery.FileFinder(path, extensions, (loader, machinery.SOURCE_SUFFIXES))  # type: ignore[arg-type]

    sys.path_hooks.insert(0, finder)
    for path in [each for each in sys.path_importer_cache if Path(each).is_relative_to(folder)]:
        del sys.path_importer_cache[path]
