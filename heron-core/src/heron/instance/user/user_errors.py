"""Failures of user code as people read them: task, place, record and remedy."""

from __future__ import annotations

import itertools
import logging
import sys
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import replace
from types import TracebackType

from heron.api.api_constants import TOPOLOGY_INSPECT_TUPLES
from heron.api.dead_letter import DeadLetter, FailedRecordError
from heron.api.definition import ComponentDefinition
from heron.api.tuple import Tuple
from heron.author_text import (
    HIDDEN,
    Described,
    class_name,
    error_text,
    named_error,
    short_text,
    traceback_text,
    without_middle,
)
from heron.clock import wall_s
from heron.driver_kit.code_origin import CodeOrigin, innermost_lines
from heron.errors import UserCodeError
from heron.instance.user.failure_places import SHOWN, CountedFailure, FailurePlace, FailurePlaces
from heron.ipc.documents.metric_names import USER_ERROR_COUNT
from heron.spi.metricsink import Event, Metric, MetricKind

__all__ = ["UserErrors", "named_values"]

_SHOWN_AT_MOST = 200  # distinct errors with their tracebacks; a failing task must not fill the disk
_RECORD_CHARACTERS = 120
_NAME_CHARACTERS = 300  # of the label of a metric
_TRACE_CHARACTERS = 4_000  # of an event: the status and the pages have it; the output of the task has 20,000

_log = logging.getLogger(__name__)


class UserErrors:
    """Shows each distinct failure once, with its traceback, and counts the rest.

    A repeated failure costs no clock and no description. Its count goes with the metrics, so the topology manager knows
    the time of the newest one to an export period.

    `add_letter` receives the records that a failure gives to the dead letters. Descriptions reach the topology manager
    and pages, so they have the values of a record only if `shows_values` allows it, as `heron inspect` does.
    `fields_of` gives the names of the values that a stream of a component has.
    """

    def __init__(self, topology: str, component: str, task_id: int, incarnation: int = 1) -> None:
        self._subject = f"topology {topology!r}, component {component!r}, task {task_id}"
        self._component, self._task_id, self._incarnation = component, task_id, incarnation
        self.add_letter: Callable[[DeadLetter], object] | None = None
        self.shows_values: Callable[[], bool] = lambda: False
        self.fields_of: Callable[[str, str], Sequence[str]] = lambda _component, _stream: ()
        self._numbers = itertools.count(1)
        self._seen: dict[tuple[str, str, str], CountedFailure] = {}
        self._others = CountedFailure("other errors")
        self._events: deque[Event] = deque(maxlen=_SHOWN_AT_MOST)
        self.places = FailurePlaces()
        self._home = ""
        self._switch_named = False
        self.last = ""

    @property
    def count(self) -> int:
        """How many failures there were."""
        return sum(each.count for each in (*self._seen.values(), self._others))

    def locate(self, component: type, place: str = "") -> None:
        """Sets the place of failures without a line, such as the encoding of an emitted tuple.

        It is the author's class, or `place` if the component has no class of the author.
        """
        codes = [code for each in vars(component).values() if (code := getattr(each, "__code__", None)) is not None]
        if place:
            self._home = place
        elif codes:
            first = min(codes, key=lambda code: code.co_firstlineno)
            self._home = f"{first.co_filename}, line {first.co_firstlineno} or after ({component.__qualname__})"

    def note(
        self,
        doing: str,
        error: BaseException,
        remedy: str,
        record: object = None,
        at: FailurePlace | None = None,
        *,
        place: str = "",
    ) -> None:
        """`report` without a description, in a tenth of the time if a failure of this class at these lines was shown.

        `at` is the place of the error, if the caller has it. An error that carries its place is always described,
        because its lines are the engine's.
        """
        at = at or self.places.of(doing, error)
        if at.counts():
            return
        if (known := at.counted) is not None:
            self._count(known)
            return
        found = self._report(doing, error, remedy, record, place)
        if error.__traceback__ is not None and not isinstance(error, UserCodeError):
            at.counted = found

    def report(self, doing: str, error: BaseException, remedy: str, record: object = None, *, place: str = "") -> str:
        """Counts the failure, prints it if it is new, and returns its description of one line.

        `record` is the tuple of the failure, its values by their names, or `Described`. `place` is the author's line
        that led to it, if no line of the author is in the traceback.
        """
        self._report(doing, error, remedy, record, place)
        return self.last

    def _report(self, doing: str, error: BaseException, remedy: str, record: object, place: str) -> CountedFailure:
        if isinstance(error, FailedRecordError) and self.add_letter is not None:
            for each in error.letters:
                self.add_letter(replace(each, component=self._component, task_id=self._task_id))
        own = error if isinstance(error, UserCodeError) else UserCodeError()
        place = own.place or _author_place(error.__traceback__, place or self._home)
        with_record = f" with {self._shown(record)}" if record is not None else ""
        named = error_text(error) if own.exception else named_error(error)
        line = f"{self._subject}: {doing}{with_record} raised {named}; at {place}; {remedy}"
        line = line.encode("utf-8", "backslashreplace").decode()  # a file name, for example, may not be valid text
        self.last = line
        exception = own.exception or class_name(error)
        what = f"{exception} at {place}"
        key = (doing, own.part, what)
        if (known := self._seen.get(key)) is not None:
            self._count(known)
            return known
        if len(self._seen) >= _SHOWN_AT_MOST:
            self._others.count += 1
            return self._others
        found = self._seen[key] = CountedFailure(_end_of(": ".join(filter(None, (doing, own.part, what)))))
        found.count = 1
        trace = traceback_text(error)
        if own.trace is not None:
            _log.debug("%s: %s", self._subject, trace)
            trace = own.trace
        _show(f"heron: {line}{self._switch(with_record)}\n{without_middle(trace)}")
        event_id = f"error-{self._task_id}-{self._incarnation}-{next(self._numbers)}"
        attributes = {"message": line, "error": found.name, "exception": exception, "place": place}
        attributes["trace"] = without_middle(trace, _TRACE_CHARACTERS)
        self._events.append(Event(event_id, "user-error", wall_s(), f"task-{self._task_id}", "", attributes))
        return found

    def _count(self, known: CountedFailure) -> None:
        """Counts a failure like one that was shown; the second says that the output has only the first of them."""
        known.count += 1
        if known.count != SHOWN:
            return
        again = f"was raised again; this output has the first alone, and the metric {USER_ERROR_COUNT} counts them"
        _show(f"heron: {self._subject}: {known.name}: {again}\n")

    def metrics(self) -> list[Metric]:
        """How often each distinct failure happened."""
        counted = [each for each in (*self._seen.values(), self._others) if each.count]
        return [
            Metric(USER_ERROR_COUNT, MetricKind.COUNTER, "errors", each.count, {"error": each.name}) for each in counted
        ]

    def named(self, component: str, stream: str, values: Sequence[object]) -> object:
        """The values of a tuple of this stream as `named_values` gives them."""
        return named_values(self.fields_of(component, stream), values)

    def _switch(self, record: str) -> str:
        """What shows hidden values; empty after the first failure that hides some."""
        if self._switch_named or HIDDEN not in record or self.shows_values():
            return ""
        self._switch_named = True
        return f"; {HIDDEN}: {TOPOLOGY_INSPECT_TUPLES} shows values"

    def _shown(self, record: object) -> str:
        if isinstance(record, Described):
            return record
        if isinstance(record, Tuple):
            values = self._values_or_hidden(self.named(record.component, record.stream, record.values))
            return f"{short_text(record, _RECORD_CHARACTERS)[:-1]}, values={values})"
        return self._values_or_hidden(record)

    def _values_or_hidden(self, values: object) -> str:
        return short_text(values, _RECORD_CHARACTERS) if self.shows_values() else HIDDEN

    def rejected(self, component: ComponentDefinition, stream: str, row: object, error: Exception) -> None:
        """Reports an emitted row that cannot be sent; a row of a stream with one field is the value itself."""
        output = component.output(stream)
        fields = output.fields if output is not None else ()
        if not isinstance(row, Described):
            values = row if isinstance(row, tuple) and len(fields) != 1 else (row,)
            row = named_values(fields, values)
        self.report(f"emit on stream {stream!r}", error, "the tuple is dropped and the task continues", row)

    def take_events(self) -> tuple[Event, ...]:
        """The events of new failures since the last call."""
        events = tuple(self._events)
        self._events.clear()
        return events


def named_values(fields: Sequence[str], values: Sequence[object]) -> object:
    """The values of a tuple by the names of their fields; only their number if a secret has no name to tell."""
    if len(fields) == len(values):
        return dict(zip(fields, values, strict=True))
    return Described(f"{len(values)} values without names")


def _author_place(trace: TracebackType | None, otherwise: str) -> str:
    """File and line of the author's innermost frame, or else `otherwise`; if that is empty, of the innermost frame."""
    lines = innermost_lines(trace)
    return lines.get(CodeOrigin.USER) or otherwise or next(iter(lines.values()), "an unknown line")


def _end_of(name: str) -> str:
    """The name of a failure, without the begin of a long one: the line is at its end."""
    return name if len(name) <= _NAME_CHARACTERS else f"…{name[1 - _NAME_CHARACTERS :]}"


def _show(text: str) -> None:
    """Prints a failure; the author may have closed or replaced stderr, and the log of the task has it then."""
    try:
        sys.stderr.write(text)
        sys.stderr.flush()
    except Exception:
        _log.exception("stderr cannot be written: %s", text)
