"""A line of source code, as observers of a task show it."""

from __future__ import annotations

import linecache

__all__ = ["source_line"]

_CHARACTERS = 160


def source_line(file: str, line: int, module_globals: dict[str, object] | None = None) -> str:
    """Return the line without its indentation, cut at 160 characters.

    A file or a line that does not exist gives "".

    `module_globals` are those of its module: a package that is a zip file loads its source through them.
    """
    return linecache.getline(file, line, module_globals).strip()[:_CHARACTERS]
