"""The paths that modules of a distribution had before. They work for one version, with a DeprecationWarning.

Programs import such paths, and stored values name them. The module of a former path has the same classes as that of the
present path. A package puts a `MovedModules` into `sys.meta_path` when it is imported itself.
"""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Mapping, Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

__all__ = ["MovedModules"]


class MovedModules(MetaPathFinder, Loader):
    """Finds and loads former paths, in `sys.meta_path`; `moved` has the present path of each former one."""

    def __init__(self, moved: Mapping[str, str]) -> None:
        self._moved = moved

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """The spec of a path that moved; None for every other path."""
        del path, target
        return ModuleSpec(fullname, self) if fullname in self._moved else None

    def exec_module(self, module: ModuleType) -> None:
        """Give the module the names of the present one."""
        present = self._moved[module.__name__]
        warnings.warn(f"{module.__name__} has moved to {present}", DeprecationWarning, stacklevel=2)
        names = vars(importlib.import_module(present))
        vars(module).update({name: value for name, value in names.items() if not name.startswith("__")})
