"""The spans of a task: what its traced rows and executions tell, until the next record of its metrics takes them."""

from __future__ import annotations

import secrets
from dataclasses import dataclass

from heron.ipc.frames.trace_field import stamp_now
from heron.spi.tracing import SpanKind, Stamp, StampKind, TraceSpan

__all__ = ["SpanBuffer", "TracePoint", "new_id", "span_text"]

_MOST_SPANS = 1_000  # of a task, until its next record
_MOST_IN_FLIGHT = 256


@dataclass(frozen=True, slots=True)
class TracePoint:
    """A traced row of a stream, by its number; see `heron.ipc.frames.trace_field.TraceEntry`."""

    row: int
    trace_id: int
    parent_id: int
    budget: int
    emitted_ns: int


class SpanBuffer:
    """The spans of a task since its last record, and the roots whose outcome is awaited. Bounded."""

    def __init__(self, component: str, task_id: int) -> None:
        self.component = component
        self.task_id = task_id
        self.dropped = 0
        """Spans that were dropped because too many waited."""
        self.cut = 0
        """Traced rows that were not followed: too many in one segment, or for their budget."""
        self.malformed = 0
        """Trace options that could not be read."""
        self.in_flight: dict[int, tuple[int, int]] = {}
        """Trace and span by the counter of the root."""
        self._spans: list[TraceSpan] = []

    def add(self, span: TraceSpan) -> None:
        """Adds a span, or counts it."""
        if len(self._spans) < _MOST_SPANS:
            self._spans.append(span)
        else:
            self.dropped += 1

    def take(self) -> tuple[TraceSpan, ...]:
        """The spans since the last call."""
        taken, self._spans = tuple(self._spans), []
        return taken

    def await_outcome(self, counter: int, point: TracePoint) -> None:
        """The root with this counter is traced."""
        if len(self.in_flight) >= _MOST_IN_FLIGHT:
            del self.in_flight[next(iter(self.in_flight))]
        self.in_flight[counter] = point.trace_id, point.parent_id

    def settled(self, counter: int, outcome: str) -> None:
        """The outcome of a root, which has arrived now."""
        trace_id, span_id = self.in_flight.pop(counter)
        self.add(self.root_span(trace_id, span_id, stamp_now(StampKind.SETTLED), outcome))

    def root_span(self, trace_id: int, span_id: int, stamp: Stamp, outcome: str = "") -> TraceSpan:
        """The span of a root, or what is known of it later."""
        return TraceSpan(
            span_text(trace_id),
            span_text(span_id),
            "",
            SpanKind.ROOT,
            self.component,
            self.task_id,
            (stamp,),
            emitted=1,
            followed=1,
            outcome=outcome,
        )


def new_id() -> int:
    """A random id of a trace or span, not 0."""
    return secrets.randbits(64) or 1


def span_text(number: int) -> str:
    """An id as text."""
    return f"{number:016x}"
