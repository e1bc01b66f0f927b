"""What can hold memory on behalf of the author: attributes of the component, keyed states, names of modules."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from types import FunctionType, ModuleType

from heron.driver_kit.code_origin import CodeOrigin, code_origin
from heron.spi.task_memory import CodeLine
from heron_task_inspector.object_sizes import attributes_of, entries_of, is_program, type_name
from heron_task_inspector.source_line import source_line

__all__ = ["Holder", "holders_of", "lines_with", "module_files"]

_MOST = 500
_LINES = 5
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


def lines_with(component: object, name: str) -> tuple[CodeLine, ...]:
    """The first lines of the author's methods of a component that use ``self.NAME``; those of its own class first."""
    return tuple(islice(_lines_with(type(component), re.compile(rf"\bself\.{re.escape(name)}\b")), _LINES))


def _lines_with(kind: type, wanted: re.Pattern[str]) -> Iterator[CodeLine]:
    for base in type.__getattribute__(kind, "__mro__"):
        for method in list(type.__getattribute__(base, "__dict__").values()):
            if type(method) is FunctionType and code_origin(method.__code__.co_filename) is CodeOrigin.USER:
                numbers = [line for _, _, line in method.__code__.co_lines() if line is not None]
                for number in range(min(numbers), max(numbers) + 1):
                    source = source_line(method.__code__.co_filename, number)
                    if wanted.search(source):
                        yield CodeLine(method.__code__.co_filename, number, source)


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
