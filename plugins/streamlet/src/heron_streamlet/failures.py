"""Failures of authors' functions, which name the operator and the author's line, and follow the operator's rule."""

from __future__ import annotations

import traceback
from collections.abc import Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Self

from heron.api import DeadLetter, FailedRecordError
from heron.author_text import named_error
from heron.clock import wall_s
from heron.driver_kit.code_origin import CodeOrigin, innermost_lines

__all__ = [
    "DEAD_LETTER",
    "RULES",
    "STOP",
    "OperatorError",
    "Step",
    "author_place",
    "error_text",
    "failed_at",
    "in_one",
]

STOP, DEAD_LETTER = "stop", "dead_letter"
RULES = ("skip", STOP, DEAD_LETTER)
"""What becomes of a record that fails in a step; without a rule, `topology.on.error` decides."""

_TRACE_CHARACTERS = 2500


@dataclass(frozen=True, slots=True)
class Step:
    """An operator as its failures need it; the text is its name and place. An empty `rule` is none."""

    name: str
    number: int
    place: str
    rule: str = ""

    def __str__(self) -> str:
        return f"{self.name!r} ({self.place})"


class OperatorError(FailedRecordError):
    """An author's function failed; the message names its operator and the line that added it.

    Attributes:
        count: how many elements and windows failed with it.
    """

    count = 1

    @classmethod
    def of(cls, operator: object, reason: str, values: Sequence[object], cause: BaseException | str = "") -> Self:
        """The error of an operator: a `Step`, whose rule it follows, or another object with name and place as text.

        `values` are what a dead letter has. `cause` is what the function raised, or the traceback of another task.
        """
        found = cls(f"operator {operator}: {reason}")
        found.part = str(operator)
        if isinstance(operator, Step) and operator.rule:
            found.stops = operator.rule == STOP
            if operator.rule == DEAD_LETTER:
                found.letters = (_letter(operator, reason, values, cause),)
        return found


def failed_at(operator: object, error: Exception, *values: object) -> OperatorError:
    """The error of an operator, with the author's own traceback; `operator` and `values` as in `OperatorError.of`.

    An `OperatorError` names its operator already, and stays as it is.
    """
    if isinstance(error, OperatorError):
        return error
    return OperatorError.of(operator, error_text(error), values, error).with_traceback(error.__traceback__)


def error_text(error: BaseException) -> str:
    """Class and message of an error; also of one whose message cannot be made."""
    return named_error(error)


def author_place(trace: TracebackType | None) -> str:
    """File and line of the author's innermost frame, or else of a library's; empty if there is none."""
    lines = innermost_lines(trace)
    return lines.get(CodeOrigin.USER) or lines.get(CodeOrigin.LIBRARY, "")


def in_one(failed: Sequence[OperatorError]) -> OperatorError:
    """One error for one or more: the first, with the number of the others."""
    first, more = failed[0], len(failed) - 1
    if not more:
        return first
    found = OperatorError(f"{first}; {more} more failed with it").with_traceback(first.__traceback__)
    found.part, found.place = first.part, first.place
    found.count = sum(each.count for each in failed)
    rules = {each.stops for each in failed}  # the strictest
    found.stops = True if True in rules else None if None in rules else False
    found.letters = tuple(letter for each in failed for letter in each.letters)
    return found


def _letter(step: Step, reason: str, values: Sequence[object], cause: BaseException | str) -> DeadLetter:
    trace = cause if isinstance(cause, str) else "".join(traceback.format_exception(cause)).rstrip()
    now_s = wall_s()
    return DeadLetter(
        list(values),
        stream="",
        tup_id=None,
        failures=1,
        outcome="failed",
        component="",
        task_id=0,
        error=reason,
        trace=trace[-_TRACE_CHARACTERS:],
        emitted_s=now_s,
        failed_s=now_s,
        step=step.name,
        step_number=step.number,
    )
