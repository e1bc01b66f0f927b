"""Failures of authors' functions, which name the operator and the author's line."""

from __future__ import annotations

import os
import sysconfig
import traceback
from collections.abc import Sequence
from types import TracebackType

from heron.author_text import named_error
from heron.errors import UserCodeError

__all__ = ["OperatorError", "author_place", "error_text", "failed_at", "in_one"]

_ENGINE = "heron"  # the import names of plugins are this, `_` and more
_LIBRARIES = tuple(sysconfig.get_path(name) + os.sep for name in ("stdlib", "platstdlib", "purelib", "platlib"))


class OperatorError(UserCodeError):
    """An author's function failed; the message names its operator and the line that added it.

    Attributes:
        count: how many elements and windows failed with it.
    """

    count = 1


def failed_at(operator: object, error: Exception) -> OperatorError:
    """The error of an operator, with the author's own traceback. The text of `operator` is its name and place.

    An `OperatorError` names its operator already, and stays as it is.
    """
    if isinstance(error, OperatorError):
        return error
    found = OperatorError(f"operator {operator}: {error_text(error)}")
    found.part = str(operator)
    return found.with_traceback(error.__traceback__)


def error_text(error: BaseException) -> str:
    """Class and message of an error; also of one whose message cannot be made."""
    return named_error(error)


def author_place(trace: TracebackType | None) -> str:
    """File and line of the author's innermost frame, or else of a library's; empty if there is none."""
    author = library = ""
    for frame, line in traceback.walk_tb(trace):
        file = frame.f_code.co_filename
        if _is_engine(file, str(frame.f_globals.get("__name__", ""))):
            continue
        if file.startswith(_LIBRARIES):
            library = f"{file}, line {line}"
        else:
            author = f"{file}, line {line}"
    return author or library


def in_one(failed: Sequence[OperatorError]) -> OperatorError:
    """One error for one or more: the first, with the number of the others."""
    first, more = failed[0], len(failed) - 1
    if not more:
        return first
    found = OperatorError(f"{first}; {more} more failed with it").with_traceback(first.__traceback__)
    found.part, found.place = first.part, first.place
    found.count = sum(each.count for each in failed)
    return found


def _is_engine(file: str, module: str) -> bool:
    """Whether code is of the engine, of a plugin, or was generated."""
    package = module.partition(".")[0]
    named = package == _ENGINE or package.startswith(f"{_ENGINE}_")
    return file.startswith("<") or (named and f"{os.sep}{package}{os.sep}" in file)
