"""Windows whose fold failed: they stand in the place of accumulators, so they go where accumulators go.

A window has its result of all its values, or none. If the fold fails for one value, a `FailedWindow` replaces the
accumulator: it travels to the task of the key, which reports it, and is part of the state until the window closes. So
it is known after a checkpoint, an update and a restore. What is combined before the shuffle travels as a row with a
negative number of windows. So a row of a good accumulator needs no test.

A task folds with the author's functions alone until it meets a failed window. From then on it folds with a
`GuardedFold`, which gives the functions no failed window.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from heron.author_text import traceback_text
from heron_streamlet.failures import OperatorError, author_place, error_text
from heron_streamlet.windowing.fold import Fold

__all__ = ["REPORTED", "FailedWindow", "GuardedFold", "WindowFailed", "failed_window", "has_failed", "window_error"]

_TRACE_CHARACTERS = 4000  # it travels, once for each window


@dataclass(frozen=True, slots=True)
class FailedWindow:
    """Why a window has no result.

    Attributes:
        reason: class and message of the error.
        place: the author's file and line.
        trace: the traceback of the task in which the fold failed.
    """

    reason: str = ""
    place: str = ""
    trace: str = ""


REPORTED = FailedWindow()
"""A failed window in a state: the task of its key has reported it."""


class WindowFailed(Exception):  # a step of the engine, which no author sees
    """A fold failed in an operator with state, which goes on with another state.

    Attributes:
        state: the new state of the key, in which the windows have failed.
        window: the window in words; empty if it has no bounds.
        error: what the author's function raised.
    """

    def __init__(self, state: object, window: object, error: Exception) -> None:
        super().__init__(window)
        self.state, self.window, self.error = state, window, error


def failed_window(error: Exception) -> FailedWindow:
    """A window that failed because an author's function raised this error."""
    trace = traceback_text(error).rstrip()
    return FailedWindow(error_text(error), author_place(error.__traceback__), trace[-_TRACE_CHARACTERS:])


def window_error(operator: object, key: object, window: object, failed: FailedWindow, *, keyed: bool) -> OperatorError:
    """The error that reports a failed window; a dead letter has its key and its text.

    `operator` is as in `OperatorError.of`; the window is a `Window`, or words.
    """
    whose = f"{window} of a key" if keyed else f"{window}"
    reason = f"{whose} has no result, because a function failed: {failed.reason}"
    found = OperatorError.of(operator, reason, (key, str(window)) if keyed else (str(window),), failed.trace)
    found.place = failed.place
    if failed.trace:
        found.add_note(failed.trace)
    return found


def has_failed(accumulators: Iterable[object]) -> bool:
    """Whether one of the accumulators is a failed window."""
    return any(type(each) is FailedWindow for each in accumulators)


@dataclass(frozen=True, slots=True)
class GuardedFold(Fold):
    """A fold among whose accumulators are failed windows: what is combined with one has failed too."""

    fold: Fold

    def first(self, value: object) -> object:
        """`Fold.first`."""
        return self.fold.first(value)

    def add(self, accumulator: object, value: object) -> object:
        """`Fold.add`."""
        return REPORTED if type(accumulator) is FailedWindow else self.fold.add(accumulator, value)

    def merge(self, left: object, right: object) -> object:
        """`Fold.merge`."""
        return REPORTED if has_failed((left, right)) else self.fold.merge(left, right)

    def result(self, accumulator: object) -> object:
        """`Fold.result`; the caller passes no failed window."""
        return self.fold.result(accumulator)

    def copied(self, accumulator: object) -> object:
        """`Fold.copied`."""
        return accumulator if type(accumulator) is FailedWindow else self.fold.copied(accumulator)

    def merger(self) -> Callable[[Any, Any], Any]:
        """`Fold.merger`."""
        return self.merge
