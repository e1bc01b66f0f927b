"""A dead letter as a line of JSON: readable, and with the encoded values, so that it can be emitted again."""

from __future__ import annotations

import reprlib
from collections.abc import Iterable

import msgspec

from heron.api.dead_letter import DeadLetter

__all__ = ["LetterLine", "letter_line"]

_VALUE_CHARACTERS = 200


class LetterLine(msgspec.Struct, frozen=True, omit_defaults=True):
    """What the file of dead letters has of each; see `heron.api.DeadLetter`.

    `id` is unique in the topology. `shown` are the values as text, at most 200 characters each. `payload` are the
    values as the serializer of the number `encoding` encodes them; empty if it cannot, which then was the error.
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
    encoding: str = ""
    payload: bytes = b""


def letter_line(letter: DeadLetter, number: str, spout: str, encoding: str, payload: bytes) -> LetterLine:
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
        encoding,
        payload,
    )


def _texts(values: Iterable[object]) -> Iterable[str]:
    shorten = reprlib.Repr()
    shorten.maxstring = shorten.maxother = shorten.maxlong = _VALUE_CHARACTERS
    for each in values:
        try:
            text = shorten.repr(each)
        except Exception:  # a value of the author may do anything
            text = f"a {type(each).__name__} whose repr fails"
        yield text[:_VALUE_CHARACTERS].encode("utf-8", "backslashreplace").decode()
