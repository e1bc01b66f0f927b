"""Modules of heronpy that programs may import but not use: Streamlets and their connectors."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from importlib.machinery import ModuleSpec
from importlib.util import module_from_spec
from types import ModuleType

from heron.api.streamlet import RefusedType

__all__ = ["STREAMLET_MODULES", "provide"]

STREAMLET_MODULES: Mapping[str, Sequence[str]] = {
    "builder": ("Builder",),
    "config": ("Config",),
    "context": ("Context",),
    "generator": ("Generator",),
    "keyedwindow": ("KeyedWindow",),
    "resources": ("Resources",),
    "runner": ("Runner",),
    "streamlet": ("Streamlet",),
    "transformoperator": ("TransformOperator",),
    "window": ("Window",),
    "windowconfig": ("WindowConfig",),
}


def provide(package: str, modules: Mapping[str, Sequence[str]]) -> None:
    """Make the modules of `package` importable, with classes that refuse every use.

    Args:
        package: the full name of the package, whose ``__init__`` calls this function.
        modules: the classes of each module, by its name below `package`.
    """
    for path, classes in modules.items():
        module = _module(f"{package}.{path}")
        for name in classes:
            namespace = {"__module__": module.__name__, "__doc__": "Not supported yet."}
            setattr(module, name, RefusedType(name, (), namespace))


def _module(name: str) -> ModuleType:
    """Return the module of that name. The import system finds it, as it looks into `sys.modules` after the parent."""
    if name in sys.modules:
        return sys.modules[name]
    parent, _, own = name.rpartition(".")
    module = module_from_spec(ModuleSpec(name, None, is_package=True))
    setattr(_module(parent), own, module)
    sys.modules[name] = module
    return module
