"""Why a task failed a tuple, as the document of a CAUSE segment."""

from __future__ import annotations

import functools
from typing import NamedTuple

import msgspec

from heron.author_text import class_name, named_error, traceback_text
from heron.ipc.frames.tracking import MAX_CAUSE_BYTES, NO_CAUSE, Cause

__all__ = ["CauseTemplate", "FailureCause", "decode_cause", "encode_cause"]

_ERROR_CHARACTERS = 1_000
_TRACEBACK_CHARACTERS = 2_500
_CHARACTER_BYTES = 6  # at most, in JSON
_NAME_BYTES = len(b',"text":""')

_decode_text = msgspec.json.Decoder(str).decode


class FailureCause(msgspec.Struct, frozen=True, omit_defaults=True):
    """The task, what it did, the exception and its traceback; `error` is empty if the component called `fail`.

    A `text` is the end of `error` and of `trace`, which lack it: the message of the exception.
    """

    component: str
    task_id: int
    doing: str = "fail"
    error: str = ""
    trace: str = ""
    text: str = ""

    @classmethod
    def of(cls, component: str, task_id: int, doing: str, error: BaseException) -> FailureCause:
        """The cause of a tuple whose processing raised."""
        trace = traceback_text(error)
        if len(trace) > _TRACEBACK_CHARACTERS:  # the last lines have the author's
            trace = f"...{trace[-_TRACEBACK_CHARACTERS:]}"
        return cls(component, task_id, doing, named_error(error)[:_ERROR_CHARACTERS], trace)


class CauseTemplate(NamedTuple):
    """The document of exceptions that differ in their text only: of one class, raised at the same lines.

    `longest` is the most characters of a text that completes it, or 0.
    """

    document: bytes
    longest: int

    @classmethod
    def of(cls, component: str, task_id: int, doing: str, error: BaseException, text: str) -> CauseTemplate:
        """The template of an exception with this text."""
        name, trace = f"{class_name(error)}: ", traceback_text(error)
        # a group of exceptions, for example, has a traceback that does not end with the text
        stack = trace[: -len(text) - 1] if text and trace.endswith(f": {text}\n") else ""
        made = encode_cause(FailureCause(component, task_id, doing, name, stack))
        if not decode_cause(made).trace:
            return cls(b"", 0)
        room = (MAX_CAUSE_BYTES - len(made[0]) - _NAME_BYTES) // _CHARACTER_BYTES
        return cls(made[0], min(room, _ERROR_CHARACTERS - len(name), _TRACEBACK_CHARACTERS - len(stack) - 1))


def encode_cause(cause: FailureCause) -> Cause:
    """A document of at most `MAX_CAUSE_BYTES`, which has all."""
    trace = cause.trace.encode("utf-8", "backslashreplace").decode()
    error = cause.error.encode("utf-8", "backslashreplace").decode()
    data = msgspec.json.encode(msgspec.structs.replace(cause, trace=trace, error=error))
    if len(data) > MAX_CAUSE_BYTES:
        data = msgspec.json.encode(msgspec.structs.replace(cause, trace="", error=error[:200]))
    return data, b""


def decode_cause(cause: Cause) -> FailureCause:
    """A cause with its text; without component for the empty one, and for one that cannot be read."""
    if cause == NO_CAUSE:
        return FailureCause("", 0)
    document, own = cause
    try:
        found = _decoded(document)
        text = _decode_text(own) if own else found.text
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        # of a peer; the letter is worth more than its cause
        return FailureCause("", 0, error=f"the cause cannot be read: {error}")
    if not text:
        return found
    return FailureCause(found.component, found.task_id, found.doing, found.error + text, f"{found.trace}{text}\n")


@functools.lru_cache(maxsize=16)  # the causes of a segment share their documents
def _decoded(document: bytes) -> FailureCause:
    return msgspec.json.decode(document, type=FailureCause)
