"""Acks and anchors of objects that the component did not receive. Nothing here runs for tuples that it did receive."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from types import FrameType, TracebackType
from typing import Any

from heron.api.tuple import Tuple, TupleHelper
from heron.author_text import class_name, short_text
from heron.driver_kit.code_origin import CodeOrigin, code_origin, module_of
from heron.errors import UsageError

__all__ = ["foreign_tuple", "only_tuples"]


def foreign_tuple(doing: str, tup: Tuple) -> UsageError | None:
    """The error for a tuple that is a copy or that another task has received, at the author's present line.

    None for a tick: its ack is only counted.
    """
    if tup.stream == TupleHelper.TICK_TUPLE_ID:
        return None
    msg = (
        f"{doing} of {short_text(tup, 120)}, which this task did not receive in its present life: it is a copy, was "
        "emitted as a value, or was restored; it has no effect, give the object that was received"
    )
    return UsageError(msg).with_traceback(_authors_line())


def only_tuples(given: list[Any], doing: str) -> list[UsageError]:
    """Removes what is not a tuple, and returns an error for each such object."""
    wrong = [each for each in given if not isinstance(each, Tuple)]
    if wrong:
        given[:] = [each for each in given if isinstance(each, Tuple)]
    return [UsageError(f"{doing} of a {class_name(each)}; give what was received") for each in _distinct(wrong)]


def _distinct(objects: Sequence[object]) -> list[object]:
    return list({id(each): each for each in objects}.values())


def _authors_line() -> TracebackType | None:
    """A traceback with the innermost frame of the author's code on this thread."""
    frame: FrameType | None = sys._getframe()
    while frame is not None:
        if code_origin(frame.f_code.co_filename, module_of(frame.f_globals)) is CodeOrigin.USER:
            return TracebackType(None, frame, frame.f_lasti, frame.f_lineno)
        frame = frame.f_back
    return None
