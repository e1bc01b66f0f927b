"""The import statements at the top of a written file, ordered as ruff orders them."""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Iterable

__all__ = ["import_block"]

_LINE_CHARACTERS = 120


def import_block(imports: Iterable[tuple[str, str]], first_party: str) -> str:
    """Statements for pairs of module and name (an empty name imports the module), the standard library first.

    `first_party` is the plugin's own package, whose imports stand last.
    """
    names: dict[str, set[str]] = defaultdict(set)
    for module, name in imports:
        names[module].add(name)
    sections: list[list[str]] = [[], [], []]
    for module in sorted(names, key=lambda each: ("" not in names[each], each)):
        top = module.partition(".")[0]
        place = 2 if top == first_party else 0 if top in sys.stdlib_module_names else 1
        sections[place].append(_statement(module, names[module]))
    return "\n\n".join("\n".join(section) for section in sections if section)


def _statement(module: str, names: set[str]) -> str:
    if "" in names:
        return f"import {module}"
    ordered = sorted(names, key=lambda name: (not name.isupper(), not name[0].isupper(), name))
    line = f"from {module} import {', '.join(ordered)}"
    if len(line) <= _LINE_CHARACTERS:
        return line
    return "\n".join([f"from {module} import (", *(f"    {name}," for name in ordered), ")"])
