"""Whose code a frame runs: the author's, a library's or the engine's. Pure."""

from __future__ import annotations

import enum
import os
import sysconfig
import traceback
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType

__all__ = ["CodeOrigin", "code_origin", "innermost_lines", "module_of"]

_ENGINE = str(Path(__file__).parents[1]) + os.sep
_LIBRARIES = tuple(sysconfig.get_path(name) + os.sep for name in ("stdlib", "platstdlib", "purelib", "platlib"))
_PLUGINS = "heron_"  # the import names of plugins, such as that of pipelines, begin with it
_GENERATED = "<"
_INTERPRETER = ("<frozen ", "<string>")


class CodeOrigin(enum.StrEnum):
    """Who has written the code."""

    USER = "user"
    LIBRARY = "library"
    ENGINE = "engine"


def module_of(names: Mapping[str, object]) -> str:
    """The name of the module that has these global names, also if it is run as the main module (``python -m NAME``)."""
    return str(getattr(names.get("__spec__"), "name", "") or names.get("__name__", ""))


def code_origin(filename: str, module: str = "") -> CodeOrigin:
    """Whose code it is, by its file and the name of its module; code that the engine generates has no file."""
    if filename.startswith(_INTERPRETER):
        return CodeOrigin.LIBRARY
    if filename.startswith((_ENGINE, _GENERATED)):
        return CodeOrigin.ENGINE
    package = module.partition(".")[0]
    if package.startswith(_PLUGINS) and f"{os.sep}{package}{os.sep}" in filename:
        return CodeOrigin.ENGINE
    return CodeOrigin.LIBRARY if filename.startswith(_LIBRARIES) else CodeOrigin.USER


def innermost_lines(trace: TracebackType | None) -> dict[CodeOrigin, str]:
    """File and line of the innermost frame of each origin in a traceback; the innermost of all comes first."""
    lines: dict[CodeOrigin, str] = {}
    for frame, line in reversed([*traceback.walk_tb(trace)]):
        file = frame.f_code.co_filename
        lines.setdefault(code_origin(file, module_of(frame.f_globals)), f"{file}, line {line}")
    return lines
