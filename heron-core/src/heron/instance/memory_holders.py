"""What can hold memory on behalf of the author: attributes of the component, keyed states, names of modules."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import ModuleType

from heron.instance.code_origin import CodeOrigin, code_origin
from heron.instance.object_sizes import attributes_of, entries_of, is_program, type_name

__all__ = ["Holder", "holders_of", "module_files"]

_MOST = 500
_NO_DATA = ("__future__.", "typing.")  # what a module imports for its annotations
_ATOMS = (bool, int, float, complex, type(None))


@dataclass(frozen=True, slots=True)
class Holder:
    """A name, its type as text, and the objects that it holds; a keyed state has one for each key group."""

    name: str
    type: str
    roots: Sequence[object]

    def entries(self) -> int | None:
        """The number of entries; None where there is no such number."""
        found = [entries_of(each) for each in self.roots]
        return None if None in found else sum(each for each in found if each is not None)


def holders_of(component: object, states: Mapping[str, Sequence[object]]) -> list[Holder]:
    """The holders of a task; None as component if there is none yet. `states` are the parts of each keyed state."""
    found = [Holder(f"state {name!r}", "keyed state", parts) for name, parts in states.items()]
    for name, value in _attributes(component):
        found.append(Holder(f"self.{name}", type_name(type(value)), (value,)))
    for module_name, module in _modules(lambda origin: origin is CodeOrigin.USER):
        for name, value in list(dict.items(vars(module))):
            if not name.startswith("__") and _is_data(value):
                found.append(Holder(f"{module_name}.{name}", type_name(type(value)), (value,)))
    return found[:_MOST]


def module_files() -> dict[str, str]:
    """The names of the loaded modules by their files, which tell a plugin of the engine from other code."""
    return {str(vars(module).get("__file__")): name for name, module in _modules(lambda _: True)}


def _attributes(component: object) -> Iterator[tuple[str, object]]:
    for name, value in list(dict.items(attributes_of(component))):
        if _is_data(value):
            yield str(name), value


def _modules(chosen: Callable[[CodeOrigin], bool]) -> Iterator[tuple[str, ModuleType]]:
    for name, module in list(sys.modules.items()):
        file = vars(module).get("__file__") if type(module) is ModuleType else None
        if isinstance(file, str) and chosen(code_origin(file, name)):
            yield name, module


def _is_data(value: object) -> bool:
    return (
        not issubclass(type(value), _ATOMS)
        and not is_program(value)
        and not type_name(type(value)).startswith(_NO_DATA)
    )
