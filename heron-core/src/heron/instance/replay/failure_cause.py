"""Why a task failed a tuple, as the document of a CAUSE segment."""

from __future__ import annotations

import msgspec

from heron.author_text import class_name, named_error, traceback_text
from heron.ipc.frames.tracking import MAX_CAUSE_BYTES

__all__ = ["CauseTemplate", "FailureCause", "decode_cause", "encode_cause"]

_ERROR_CHARACTERS = 1_000
_TRACEBACK_CHARACTERS = 2_500  # a character takes up to four bytes, and six in JSON if it is a control character
_PARTS = 3  # of a document around its two texts


class FailureCause(msgspec.Struct, frozen=True, omit_defaults=True):
    """The task, what it did, the exception and its traceback; `error` is empty if the component called `fail`."""

    component: str
    task_id: int
    doing: str = "fail"
    error: str = ""
    trace: str = ""

    @classmethod
    def of(cls, component: str, task_id: int, doing: str, error: BaseException) -> FailureCause:
        """The cause of a tuple whose processing raised."""
        trace = traceback_text(error)
        if len(trace) > _TRACEBACK_CHARACTERS:  # the last lines have the author's
            trace = f"...{trace[-_TRACEBACK_CHARACTERS:]}"
        return cls(component, task_id, doing, named_error(error)[:_ERROR_CHARACTERS], trace)


class CauseTemplate:
    """The documents of exceptions that differ in their text only: of one class, raised at the same lines."""

    def __init__(self, component: str, task_id: int, doing: str, error: BaseException, text: str) -> None:
        self._error, trace = f"{class_name(error)}: ", traceback_text(error)
        # a group of exceptions, for example, has a traceback that does not end with the text
        self._stack = trace[: -len(text) - 1] if text and trace.endswith(f": {text}\n") else ""
        mark = "\0"
        document = encode_cause(FailureCause(component, task_id, doing, self._error + mark, f"{self._stack}{mark}\n"))
        self._parts = document.split(_encoded(mark))

    def document(self, text: str) -> bytes | None:
        """The document of the exception with this text; None if it is not made of the same parts."""
        longest = min(_ERROR_CHARACTERS - len(self._error), _TRACEBACK_CHARACTERS - len(self._stack) - 1)
        if not self._stack or not 0 < len(text) <= longest or len(self._parts) != _PARTS:
            return None
        try:
            document = _encoded(text).join(self._parts)
        except UnicodeEncodeError:
            return None
        return document if len(document) <= MAX_CAUSE_BYTES else None


def _encoded(text: str) -> bytes:
    """The text as a part of a JSON string."""
    return msgspec.json.encode(text)[1:-1]


def encode_cause(cause: FailureCause) -> bytes:
    """At most `MAX_CAUSE_BYTES`."""
    trace = cause.trace.encode("utf-8", "backslashreplace").decode()
    error = cause.error.encode("utf-8", "backslashreplace").decode()
    data = msgspec.json.encode(msgspec.structs.replace(cause, trace=trace, error=error))
    if len(data) > MAX_CAUSE_BYTES:
        data = msgspec.json.encode(msgspec.structs.replace(cause, trace="", error=error[:200]))
    return data


def decode_cause(data: bytes) -> FailureCause:
    """The cause in a document; without component for the empty one, and for one that cannot be read."""
    if not data:
        return FailureCause("", 0)
    try:
        return msgspec.json.decode(data, type=FailureCause)
    except msgspec.MsgspecError as error:  # of a peer: the letter is worth more than its cause
        return FailureCause("", 0, error=f"the cause cannot be read: {error}")
