"""Failures of user code as people read them: task, place, record and remedy."""

from __future__ import annotations

import itertools
import sys
import traceback
from collections import deque
from types import TracebackType

from heron.clock import wall_s
from heron.driver_kit.code_origin import CodeOrigin, code_origin
from heron.spi.metricsink import Event

__all__ = ["UserErrors"]

_SHOWN_AT_MOST = 200  # distinct errors with their tracebacks; a failing task must not fill the disk
_RECORD_CHARACTERS = 120


class UserErrors:
    """Shows each distinct failure once, with its traceback, and counts the rest."""

    def __init__(self, topology: str, component: str, task_id: int) -> None:
        self._subject = f"topology {topology!r}, component {component!r}, task {task_id}"
        self._task_id = task_id
        self._numbers = itertools.count(1)
        self._seen: dict[tuple[str, str], int] = {}
        self._events: deque[Event] = deque(maxlen=_SHOWN_AT_MOST)
        self._home = "an unknown line"
        self.count = 0
        self.last = ""

    def locate(self, component: type) -> None:
        """Sets the author's class as the place of failures without a line, such as the encoding of an emitted tuple."""
        codes = [code for each in vars(component).values() if (code := getattr(each, "__code__", None)) is not None]
        if codes:
            first = min(codes, key=lambda code: code.co_firstlineno)
            self._home = f"{first.co_filename}, line {first.co_firstlineno} or after ({component.__qualname__})"

    def report(self, doing: str, error: BaseException, remedy: str, record: object = None) -> str:
        """Counts the failure, prints it if it is new, and returns its description of one line."""
        self.count += 1
        place = _place(error.__traceback__) or self._home
        shown = f" with {_shortened(record)}" if record is not None else ""
        line = f"{self._subject}: {doing}{shown} raised {type(error).__name__}: {error}; at {place}; {remedy}"
        line = line.encode("utf-8", "backslashreplace").decode()  # a file name, for example, may not be valid text
        self.last = line
        key = (doing, f"{type(error).__name__} at {place}")
        self._seen[key] = self._seen.get(key, 0) + 1
        if self._seen[key] == 1 and len(self._seen) <= _SHOWN_AT_MOST:
            trace = "".join(traceback.format_exception(error))
            sys.stderr.write(f"heron: {line}\n{trace}")
            sys.stderr.flush()
            event_id = f"error-{self._task_id}-{next(self._numbers)}"
            self._events.append(Event(event_id, "user-error", wall_s(), f"task-{self._task_id}", "", {"message": line}))
        return line

    def take_events(self) -> tuple[Event, ...]:
        """The events of new failures since the last call."""
        events = tuple(self._events)
        self._events.clear()
        return events


def _place(trace: TracebackType | None) -> str:
    """File and line of the author's innermost frame, or else of the innermost frame outside the engine.

    Empty without a traceback.
    """
    frames = traceback.extract_tb(trace)
    if not frames:
        return ""
    foreign = [frame for frame in frames if code_origin(frame.filename) is not CodeOrigin.ENGINE]
    authors = [frame for frame in foreign if code_origin(frame.filename) is CodeOrigin.USER]
    frame = (authors or foreign or frames)[-1]
    return f"{frame.filename}, line {frame.lineno}"


def _shortened(record: object) -> str:
    try:
        text = repr(record)
    except Exception:  # a broken __repr__ must not hide the failure
        text = f"a {type(record).__name__} whose repr fails"
    return text if len(text) <= _RECORD_CHARACTERS else text[: _RECORD_CHARACTERS - 1] + "…"
