"""Dead letters in the files beside the logs of tasks: a line of JSON each."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from heron.errors import RemoteProtocolError

__all__ = ["LetterLine", "LettersAnswer", "decode_letters_answer", "encode_letters_answer", "read_line"]


class LetterLine(msgspec.Struct, frozen=True, omit_defaults=True):
    """What the file of dead letters has of each; see `heron.api.DeadLetter`.

    `id` is unique in the topology. `shown` are the values as text, at most 200 characters each. `payload` is a pickle
    of the values; empty if they have none, and such a letter cannot be emitted again. `spout` is the component whose
    task wrote the letter; with a `step` it may be a bolt.
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
    step: str = ""
    step_number: int = -1


def read_line(line: bytes) -> LetterLine | None:
    """The letter in a line of the file; None if the line is broken, such as the last one of a task that was killed."""
    try:
        letter = msgspec.json.decode(line, type=LetterLine)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return None
    return letter if letter.id.partition("-")[0].isdecimal() else None  # the id begins with the task


class LettersAnswer(msgspec.Struct, frozen=True):
    """What became of the letters that a command has asked a task for: the id, and why it stays, or an empty text."""

    found: dict[str, str]


def encode_letters_answer(found: Mapping[str, str]) -> bytes:
    """As the document of a `TaskAnswer`."""
    return msgspec.json.encode(LettersAnswer(dict(found)))


def decode_letters_answer(document: bytes) -> LettersAnswer:
    """The answer of a task.

    Raises:
        RemoteProtocolError: when it is garbled.
    """
    try:
        return msgspec.json.decode(document, type=LettersAnswer)
    except msgspec.MsgspecError as error:
        msg = f"the answer about dead letters is garbled: {error}"
        raise RemoteProtocolError(msg) from error
