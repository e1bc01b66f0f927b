"""What a component has thrown, as its author reads it: class, message, line and stack trace of Java."""

from __future__ import annotations

import re

from heron_runtime_multilang.child_error import ChildError

__all__ = ["JavaFailure"]

_FRAME = re.compile(r"\s*at (?:[\w.@-]*/)*(?P<method>[\w.$<>]+)\((?P<line>.*)\)")
_RUNTIME = "heron.jvm."
_LIBRARIES = ("java.", "javax.", "jdk.", "sun.", "com.esotericsoftware.", "org.apache.storm.", _RUNTIME)
_AUTHORS = "org.apache.storm.starter."


class JavaFailure(ChildError):
    """An exception of Java. Its place is the author's innermost line, else `place`; frames of the runtime are left out.

    An exception that the runtime itself throws, about the settings of the component, has no trace.
    """

    def __init__(self, exception: str, message: str, trace: str, place: str) -> None:
        lines = trace.splitlines(keepends=True)
        frames = [found for each in lines if (found := _FRAME.match(each))]
        own = next((f"{each['method']}({each['line']})" for each in frames if _is_authors(each["method"])), "")
        super().__init__(exception if message == "null" else f"{exception}: {message}", message, own or place)
        self.exception = exception
        if own or (frames and not frames[0]["method"].startswith(_RUNTIME)):
            self.trace = "".join(each for each in lines if not _is_of_runtime(each))


def _is_of_runtime(line: str) -> bool:
    found = _FRAME.match(line)
    return found is not None and found["method"].startswith(_RUNTIME)


def _is_authors(method: str) -> bool:
    return method.startswith(_AUTHORS) or not method.startswith(_LIBRARIES)
