"""Failures of authors' functions, which name the operator."""

from __future__ import annotations

from collections.abc import Sequence

from heron.errors import UserCodeError

__all__ = ["OperatorError", "failed_at", "in_one"]


class OperatorError(UserCodeError):
    """An author's function failed; the message names its operator and the line that added it."""


def failed_at(operator: object, error: Exception) -> OperatorError:
    """The error of an operator, with the author's own traceback. The text of `operator` is its name and place."""
    found = OperatorError(f"operator {operator}: {type(error).__name__}: {error}")
    return found.with_traceback(error.__traceback__)


def in_one(failed: Sequence[OperatorError]) -> OperatorError:
    """One error for one or more: the first, with the number of the others."""
    first, more = failed[0], len(failed) - 1
    return OperatorError(f"{first}; {more} more failed with it").with_traceback(first.__traceback__) if more else first
