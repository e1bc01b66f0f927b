"""Modules of heronpy that programs may import but not use: the former name of Streamlets, and Pulsar."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from importlib.machinery import ModuleSpec
from importlib.util import module_from_spec
from types import ModuleType
from typing import NoReturn

from heron.errors import TopologyError

__all__ = ["RefusedType", "provide"]


class RefusedType(type):
    """The metaclass of a class that may be imported and derived from, but not called or asked for an attribute."""

    refusal = ""

    def __call__(cls, *_: object, **__: object) -> NoReturn:
        """Refuse.

        Raises:
            TopologyError: always; the loader adds the author's file and line.
        """
        cls._refuse("")

    def __getattr__(cls, name: str) -> NoReturn:
        if name.startswith("__"):  # Python itself looks for these, in isinstance or in a class statement
            raise AttributeError(name)
        cls._refuse(f".{name}")

    def _refuse(cls, attribute: str) -> NoReturn:
        msg = f"{cls.__module__}.{cls.__qualname__}{attribute}: {type.__getattribute__(cls, 'refusal')}"
        raise TopologyError(msg)


def provide(package: str, modules: Mapping[str, Sequence[str]], refusal: str) -> None:
    """Make the modules of `package` importable, with classes that refuse every use.

    Args:
        package: the full name of the package, whose ``__init__`` calls this function.
        modules: the classes of each module, by its name below `package`.
        refusal: the end of the error: why the class cannot be used, and what can.
    """
    for path, classes in modules.items():
        module = _module(f"{package}.{path}")
        for name in classes:
            namespace = {"__module__": module.__name__, "__doc__": "Not supported.", "refusal": refusal}
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
