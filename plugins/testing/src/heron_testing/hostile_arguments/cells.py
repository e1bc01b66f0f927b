"""Cells of the matrix, and what the engine makes of them: it works, it is refused, it fails later, or it is a fault."""

from __future__ import annotations

import enum
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy

from heron.api import IMetric
from heron.author_text import class_name, error_text, short_text
from heron.errors import HeronError
from heron_testing.hostile_arguments.arguments import ARGUMENTS, CLASSES
from heron_testing.hostile_arguments.author_file import FILE_NAME, class_at, first_line_of_calls, line_of
from heron_testing.hostile_arguments.calls import CALLS, Call, Caller
from heron_testing.hostile_arguments.components import Place

__all__ = [
    "PLACES",
    "Cell",
    "Outcome",
    "Verdict",
    "cells",
    "contradictions",
    "judged",
    "verdict_of_call",
    "wrong_error",
]

PLACES: dict[Caller, tuple[Place, ...]] = {
    Caller.BOLT: tuple(Place),
    Caller.SPOUT: (Place.INITIALIZE, Place.PROCESS, Place.CALLBACK, Place.THREAD),
    Caller.GROUPING: (Place.PROCESS, Place.TICK, Place.FINISH, Place.CALLBACK),
    Caller.FILE: (Place.INITIALIZE,),
    Caller.PIPELINE: (Place.INITIALIZE,),
}
"""Where each caller calls. A file of a topology has one place: it is loaded."""

_LINE = re.compile(r"component '(\w+)', task \d+: (.*) raised (\w+)(?:: |;).*?; at (.*?), line (\d+)", re.DOTALL)
_OWN = {"HostileError", "Failure"}
_SHARED = ("context.register_metric(", "context.keyed_state(", "global_metrics.", "self.maps.", "X in self.values")
"""Calls that give otherwise where an earlier cell of the task has used the same name or key."""


class Outcome(enum.StrEnum):
    """What became of a call."""

    WORKS = "works"
    REFUSED = "refused"
    """It raised at its line."""
    FAILS = "fails later"
    """It returned; its tuple, metric or queued call failed later, and the engine named component, task and class."""
    FAULT = "FAULT"


@dataclass(frozen=True, slots=True)
class Verdict:
    """The outcome of a cell; `reason` is for people."""

    outcome: Outcome
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Cell:
    """A call with an argument in a place."""

    call: Call
    argument: str
    place: Place

    def __str__(self) -> str:
        return f"{self.call.line}, X = {ARGUMENTS[self.argument]}, in {self.place} of a {self.call.caller}"


def cells(callers: Sequence[Caller] = tuple(Caller)) -> Iterator[Cell]:
    """All cells, row by row."""
    for call in CALLS:
        if call.caller in callers:
            for argument in ARGUMENTS:
                for place in PLACES[call.caller]:
                    yield Cell(call, argument, place)


def judged(cell: Cell, errors: Sequence[str]) -> Verdict:
    """The verdict by the errors that the engine has shown."""
    refused = False
    for error in errors:
        if (found := _LINE.search(error)) is None:
            return Verdict(Outcome.FAULT, f"no component, task or line: {error}")
        component, doing, name, file, number = found.groups()
        if component not in {"hostile", "sink"}:
            return Verdict(Outcome.FAULT, f"the error of a neighbour: {error}")
        if not file.endswith(FILE_NAME):
            return Verdict(Outcome.FAULT, f"no line of the author: {error}")
        if problem := wrong_error(cell, name, error):
            return Verdict(Outcome.FAULT, f"{problem}: {error}")
        at_the_call = int(number) == line_of(cell.call) or int(number) < first_line_of_calls()
        refused |= at_the_call and not doing.startswith(("emit on", "a call of", "reading", "metric", "backlog"))
    if refused:
        return Verdict(Outcome.REFUSED, errors[0])
    return Verdict(Outcome.FAILS, errors[0]) if errors else Verdict(Outcome.WORKS)


def verdict_of_call(cell: Cell, error: BaseException, *, at_the_call: bool) -> Verdict:
    """The verdict by what a file or a pipeline raised: at the line of the call, or later."""
    name = class_name(error)
    text = f"{name}: {error_text(error)}"
    problem = wrong_error(cell, name, text)
    if not (problem or at_the_call or isinstance(error, HeronError)):
        problem = "not of the engine's classes"
    if problem:
        return Verdict(Outcome.FAULT, f"{problem}: {text}")
    return Verdict(Outcome.REFUSED if at_the_call else Outcome.FAILS, text)


def contradictions(expected: Mapping[Cell, Outcome], errors: Sequence[str]) -> list[str]:
    """What the errors of a task that ran many cells, one of each call, say otherwise than the expected outcomes.

    An error at the line of a call belongs to its cell. An error at a line of an author's class, as of a value that
    cannot be encoded, belongs to the cells without an error at their line whose argument it names. Equal errors are
    shown once. Cells that depend on earlier cells are left out.
    """
    at_lines: dict[int, list[str]] = {}
    for error in errors:
        at_lines.setdefault(int(found[5]) if (found := _LINE.search(error)) else 0, []).append(error)
    of_classes = [error for line, each in at_lines.items() if line < first_line_of_calls() for error in each]
    wrong, silent = [], []
    for cell, outcome in expected.items():
        if cell.call.line.startswith(_SHARED):
            continue
        verdict = judged(cell, at_lines.get(line_of(cell.call), ()))
        if verdict.outcome is Outcome.WORKS and outcome is not Outcome.WORKS:
            silent.append(cell)
        elif verdict.outcome is not outcome:
            wrong.append(f"{cell}: {verdict.outcome} instead of {outcome}; {verdict.reason}")
    unnamed = [cell for cell in silent if not any(_may_be_of(cell, error) for error in of_classes)]
    return wrong + [f"{cell}: no error instead of {expected[cell]}" for cell in unnamed]


def _may_be_of(cell: Cell, error: str) -> bool:
    """Whether an error at a line of a class may be of a cell: it names the argument by its class, type or text.

    What groupings answer is refused at one line, so one error is shown for all of them.
    """
    if cell.call.caller is Caller.GROUPING:
        return "custom grouping" in error
    value = _value_of(cell.argument)
    found, name = _LINE.search(error), type(value).__name__
    if found is not None and class_at(int(found[5])) == name:
        return True
    shown = short_text(value).partition(" at 0x")[0]
    ways = (f" of type {name} ", f" of a {name};", f"its value, a {name},", f"its value, {shown},")
    return any(each in error for each in ways)


@lru_cache
def _value_of(argument: str) -> object:
    names: dict[str, object] = {"IMetric": IMetric, "numpy": numpy}
    exec(CLASSES, names)  # noqa: S102  # our own text
    return eval(ARGUMENTS[argument], names)  # noqa: S307  # our own text


def wrong_error(cell: Cell, name: str, text: str) -> str:
    """What is wrong with the class and the text of an error; empty if nothing is.

    The engine's own classes are right, and those that Python raises for a wrong argument. The author's are right if
    the engine must call the method that raises.
    """
    if "integer string conversion" in text:
        return "the error is that of its text, which has an integer that Python refuses to write"
    if name in _OWN:
        unasked = cell.argument == "`__repr__` raises" and "raise " not in cell.call.line
        return "an error text calls __repr__" if unasked else ""
    if name in {"TypeError", "UFuncTypeError", "ValueError", "OverflowError"} | _names(HeronError):
        return ""
    return f"a {name} from inside the engine"


def _names(cls: type[object]) -> set[str]:
    found = {cls.__name__}
    for each in cls.__subclasses__():
        found |= _names(each)
    return found
