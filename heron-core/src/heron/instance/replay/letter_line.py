"""A dead letter as a line of JSON: readable, and with a pickle of the values, so that it can be emitted again.

Only the owner of the topology can read and write the file, and only the task that wrote a line unpickles it.
"""

from __future__ import annotations

import pickle
import reprlib
from collections.abc import Iterable

import msgspec

from heron.api.dead_letter import DeadLetter
from heron.errors import SerializationError

__all__ = ["LetterLine", "letter_line", "read_line"]

_VALUE_CHARACTERS = 200
_PROTOCOL = 5


class LetterLine(msgspec.Struct, frozen=True, omit_defaults=True):
    """What the file of dead letters has of each; see `heron.api.DeadLetter`.

    `id` is unique in the topology. `shown` are the values as text, at most 200 characters each. `payload` is a pickle
    of the values; empty if they have none, and such a letter cannot be emitted again.
    """

    id: str
    spout: str
    stream: str
    shown: tuple[str, ...]
    tup_id: str
    failures: int
    outcome: str
    component: str = ""
    task_id: int = 0
    error: str = ""
    trace: str = ""
    emitted_s: float = 0.0
    failed_s: float = 0.0
    payload: bytes = b""

    def values(self) -> object:
        """What the spout emitted: a list of values, or a batch of columns.

        Raises:
            SerializationError: when there is no pickle of them, or it does not load.
        """
        if not self.payload:
            msg = f"dead letter {self.id}: its values have no pickle, so it cannot be emitted again; drop it"
            raise SerializationError(msg)
        try:
            return pickle.loads(self.payload)  # noqa: S301  # this task wrote it, into a file of its owner
        except Exception as error:
            msg = f"dead letter {self.id}: its values do not load: {type(error).__name__}: {error}; drop it"
            raise SerializationError(msg) from error


def read_line(line: bytes) -> LetterLine | None:
    """The letter in a line of the file; None if the line is broken, such as the last one of a task that was killed."""
    try:
        return msgspec.json.decode(line, type=LetterLine)
    except msgspec.MsgspecError:
        return None


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
    )


def _pickled(values: object) -> bytes:
    try:
        return pickle.dumps(values, _PROTOCOL)
    except Exception:  # a value of the author may do anything
        return b""


def _texts(values: Iterable[object]) -> Iterable[str]:
    shorten = reprlib.Repr()
    shorten.maxstring = shorten.maxother = shorten.maxlong = _VALUE_CHARACTERS
    for each in values:
        try:
            text = shorten.repr(each)
        except Exception:  # a value of the author may do anything
            text = f"a {type(each).__name__} whose repr fails"
        yield text[:_VALUE_CHARACTERS].encode("utf-8", "backslashreplace").decode()
