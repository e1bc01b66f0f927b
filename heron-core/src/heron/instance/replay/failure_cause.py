"""Why a task failed a tuple, as the document of a CAUSE segment."""

from __future__ import annotations

import msgspec

from heron.author_text import named_error, traceback_text
from heron.ipc.frames.tracking import MAX_CAUSE_BYTES

__all__ = ["FailureCause", "decode_cause", "encode_cause", "stack_text"]

_ERROR_CHARACTERS = 1_000
_TRACEBACK_CHARACTERS = 2_500  # a character takes up to four bytes, and six in JSON if it is a control character


class FailureCause(msgspec.Struct, frozen=True, omit_defaults=True):
    """The task, what it did, the exception and its traceback; `error` is empty if the component called `fail`."""

    component: str
    task_id: int
    doing: str = "fail"
    error: str = ""
    trace: str = ""

    @classmethod
    def of(cls, component: str, task_id: int, doing: str, error: BaseException, trace: str = "") -> FailureCause:
        """The cause of a tuple whose processing raised; `trace` is the traceback if it is known."""
        trace = trace or traceback_text(error)
        if len(trace) > _TRACEBACK_CHARACTERS:  # the last lines have the author's
            trace = f"...{trace[-_TRACEBACK_CHARACTERS:]}"
        return cls(component, task_id, doing, named_error(error)[:_ERROR_CHARACTERS], trace)


def stack_text(error: BaseException, text: str) -> str:
    """The traceback without the message, which ends it; empty if it does not, as that of a group of exceptions."""
    trace = traceback_text(error)
    return trace[: -len(text) - 1] if text and trace.endswith(f": {text}\n") else ""


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
