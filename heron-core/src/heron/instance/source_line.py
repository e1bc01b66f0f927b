"""A line of source code, as observers of a task show it."""

from __future__ import annotations

import linecache

__all__ = ["source_line"]

_CHARACTERS = 160


def source_line(file: str, line: int, module_globals: dict[str, object] | None = None) -> str:
    """The line without its indentation, cut at 160 characters; "" where there is no such file or line.

    `module_globals` are those of its module: a package that is a zip file loads its source through them.
    """
    return linecache.getline(file, line, module_globals).strip()[:_CHARACTERS]
