"""The paths that published modules had before they left the core. They work for one version, with a DeprecationWarning.

The module of an old path has the same objects as that of the new path. Delete this module in the version after 0.1.

Every process imports this module, so it does without `importlib.abc`, which takes longer to import than all of it.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from importlib import import_module
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from importlib.abc import Loader

__all__ = ["MOVED", "MovedModules"]

MOVED: Mapping[str, str] = {
    "heron.driver_kit.checkpoint_names": "heron_driver_kit.checkpoint_names",
    "heron.driver_kit.native_memory": "heron_driver_kit.native_memory",
    "heron.driver_kit.os_errors": "heron_driver_kit.os_errors",
    "heron.driver_kit.packages": "heron_driver_kit.packages",
    "heron.driver_kit.view_names": "heron_driver_kit.view_names",
    "heron.planner.capacity": "heron_packing_kit.capacity",
    "heron.planner.container_moves": "heron_packing_kit.container_moves",
    "heron.planner.first_fit": "heron_packing_kit.first_fit",
    "heron.planner.plan_change": "heron_packing_kit.plan_change",
    "heron.planner.plan_draft": "heron_packing_kit.plan_draft",
    "heron.spi.capacity_options": "heron_packing_kit.capacity_options",
    "heron.spi.sink_buffer": "heron_driver_kit.sink_buffer",
}
"""The present path of each path that moved."""


class MovedModules:
    """Finds and loads old paths, in `sys.meta_path`; `moved` has the present path of each."""

    def __init__(self, moved: Mapping[str, str]) -> None:
        self._moved = moved

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None, /
    ) -> ModuleSpec | None:
        """The spec of a path that moved; None for every other path."""
        del path, target
        if fullname not in self._moved:
            return None
        is_package = any(each.startswith(f"{fullname}.") for each in self._moved)
        return ModuleSpec(fullname, cast("Loader", self), is_package=is_package)

    def create_module(self, spec: ModuleSpec) -> None:
        """None: the import system makes an empty module."""

    def exec_module(self, module: ModuleType) -> None:
        """Give the module the names of the present one.

        Raises:
            ImportError: when the distribution of the present module is not installed; names the command that does it.
        """
        former = module.__name__
        present = self._moved[former]
        kit = present.partition(".")[0]
        warnings.warn(f"{former} has moved to {present}", DeprecationWarning, stacklevel=2)
        try:
            names = vars(import_module(present))
        except ModuleNotFoundError as error:
            if error.name != kit:
                raise
            msg = f"{former} has moved to {present}, which is not installed; run: pip install {kit.replace('_', '-')}"
            raise ImportError(msg, name=present) from error
        vars(module).update({name: value for name, value in names.items() if not name.startswith("__")})
