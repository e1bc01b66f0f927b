"""A dead letter as a line of JSON: readable, and with a pickle of the values, so that it can be emitted again.

Only the owner of the topology can read and write the file, and only the task that wrote a line unpickles it.
"""

from __future__ import annotations

import pickle
import reprlib
from collections.abc import Iterable

from heron.api.dead_letter import DeadLetter
from heron.errors import SerializationError
from heron.ipc.documents.letter_line import LetterLine

__all__ = ["letter_line", "values_of"]

_VALUE_CHARACTERS = 200
_PROTOCOL = 5


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


def letter_line(letter: DeadLetter, number: str, spout: str) -> LetterLine:
    """The line of a letter; `number` becomes its id."""
    values = letter.values
    shown = values if isinstance(values, list | tuple) else (values,)
    return LetterLine(
        number,
        spout,
        letter.stream,
        tuple(_texts(shown)),
        "".join(_texts((letter.tup_id,))),
        letter.failures,
        letter.outcome,
        letter.component,
        letter.task_id,
        letter.error,
        letter.trace,
        letter.emitted_s,
        letter.failed_s,
        _pickled(values),
        letter.step,
        letter.step_number,
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


def _texts(values: Iterable[object]) -> Iterable[str]:
    for each in values:
        try:
            short = (type(each) is str and len(each) < _VALUE_CHARACTERS) or type(each) is int
            text = repr(each) if short else _SHORTEN.repr(each)
        except Exception:  # a value of the author may do anything
            text = f"a {type(each).__name__} whose repr fails"
        yield text[:_VALUE_CHARACTERS].encode("utf-8", "backslashreplace").decode()
