"""A dead letter as a line of JSON: readable, and with a pickle of the values, so that it can be emitted again.

Only the owner of the topology can read and write the file, and only the task that wrote a line unpickles it.
"""

from __future__ import annotations

import pickle
import reprlib
from typing import cast

from heron.api.dead_letter import DEAD_LETTER_STREAM, DeadLetter
from heron.errors import SerializationError
from heron.ipc.documents.letter_line import LetterLine

__all__ = ["LetterRow", "letter_line", "letter_row", "values_of"]

_VALUE_CHARACTERS = 200
_PROTOCOL = 5


LetterRow = tuple[object, str, object, int, str, str, int, str, str, float, float, str, int]
"""A tuple of the stream ``dead_letters``: the attributes of a `DeadLetter`, in a tenth of its time."""


def letter_row(letter: DeadLetter) -> LetterRow:
    """The attributes of a letter."""
    return cast("LetterRow", tuple(getattr(letter, each) for each in DEAD_LETTER_STREAM.fields))


def values_of(line: LetterLine) -> object:
    """What the spout emitted: a list of values, or a batch of columns.

    Raises:
        SerializationError: when there is no pickle of them, it does not load, or the letter is of a step.
    """
    if line.step:
        msg = (
            f"dead letter {line.id} is of the step {line.step!r}, which cannot get it again: its event time and its "
            "place among other elements are lost; give the element to the source of the pipeline again, then drop it"
        )
        raise SerializationError(msg)
    if not line.payload:
        msg = f"dead letter {line.id}: its values have no pickle, so it cannot be emitted again; drop it"
        raise SerializationError(msg)
    try:
        return pickle.loads(line.payload)  # noqa: S301  # this task wrote it, into a file of its owner
    except Exception as error:
        msg = f"dead letter {line.id}: its values do not load: {type(error).__name__}: {error}; drop it"
        raise SerializationError(msg) from error


def letter_line(letter: LetterRow, number: str, spout: str) -> LetterLine:
    """The line of a letter; `number` becomes its id."""
    values, stream, tup_id, failures, outcome, component, task_id, error, trace, first_s, last_s, step, place = letter
    shown = values if isinstance(values, list | tuple) else (values,)
    return LetterLine(
        number,
        spout,
        stream,
        tuple([_text(each) for each in shown]),
        _text(tup_id),
        failures,
        outcome,
        component,
        task_id,
        error,
        trace,
        first_s,
        last_s,
        _pickled(values),
        step,
        place,
    )


def _pickled(values: object) -> bytes:
    try:
        return pickle.dumps(values, _PROTOCOL)
    except Exception:  # a value of the author may do anything
        return b""


class _ShortRepr(reprlib.Repr):
    def __init__(self) -> None:
        super().__init__()
        self.maxstring = self.maxother = self.maxlong = _VALUE_CHARACTERS


_SHORTEN = _ShortRepr()  # to make one takes as long as to use it


def _text(value: object) -> str:
    try:
        kind = type(value)
        short = kind is int or (kind is str and len(value) < _VALUE_CHARACTERS)  # type: ignore[arg-type]  # a text
        text = repr(value) if short else _SHORTEN.repr(value)
    except Exception:  # a value of the author may do anything
        text = f"a {type(value).__name__} whose repr fails"
    text = text[:_VALUE_CHARACTERS]
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode()
