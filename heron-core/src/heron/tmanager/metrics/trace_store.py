"""The newest traces of a topology, put together from the spans of all tasks. Pure and bounded.

Each process publishes once per export period, so the spans of a trace arrive in any order, within some periods. A store
that is full gives up its oldest whole trace, but not one that is still arriving: then it refuses new ones. Traces whose
tuples still wait somewhere are the slow ones, so they stay as long as they are not the greater part.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable

import msgspec

from heron.ipc.documents.traces_table import Trace, TracesTable
from heron.spi.tracing import TraceSpan

__all__ = ["TraceStore"]

_MOST_TRACES = 512
_MOST_SPANS = 256
_MOST_SPANS_TOGETHER = 8192  # a reply has them all
_ARRIVING_S = 5.0  # some export periods


class _Gathered:
    """The spans of one trace, by id."""

    __slots__ = ("_missing", "began_s", "cut", "spans")

    def __init__(self, began_s: float) -> None:
        self.began_s = began_s
        self.spans: dict[str, TraceSpan] = {}
        self.cut = False
        self._missing = 1  # the root, and what the spans say that they have emitted

    @property
    def is_open(self) -> bool:
        """Whether spans are missing that may still come."""
        return self._missing > 0 and not self.cut

    def add(self, span: TraceSpan, *, has_room: bool) -> None:
        present = self.spans.get(span.span_id)
        if present is not None:
            merged = self.spans[span.span_id] = _merged(present, span)
            self._missing += merged.followed - present.followed
        elif len(self.spans) < _MOST_SPANS and has_room:
            self.spans[span.span_id] = span
            self._missing += span.followed - 1
        else:
            self.cut = True


class TraceStore:
    """Gathers spans; times are monotonic seconds."""

    def __init__(
        self,
        *,
        most_traces: int = _MOST_TRACES,
        most_spans: int = _MOST_SPANS_TOGETHER,
        arriving_s: float = _ARRIVING_S,
    ) -> None:
        self._most_traces = most_traces
        self._most_spans = most_spans
        self._arriving_s = arriving_s
        self._spans = 0
        self._traces: OrderedDict[str, _Gathered] = OrderedDict()
        self._refused: OrderedDict[str, None] = OrderedDict()
        self.refused = 0
        """Traces that were not kept because too many were arriving."""

    def add(self, spans: Iterable[TraceSpan], now_s: float) -> None:
        """Adds the spans of a record. A span that arrives again changes nothing."""
        for span in spans:
            has_room = self._has_room(now_s)  # first: it may give up the trace of this span
            trace = self._traces.get(span.trace_id) or self._begun(span.trace_id, now_s)
            if trace is not None:
                before = len(trace.spans)
                trace.add(span, has_room=has_room)
                self._spans += len(trace.spans) - before

    def table(self, limit: int = 0) -> TracesTable:
        """The newest traces, at most `limit`; 0: all."""
        kept = [Trace(trace_id, tuple(each.spans.values()), each.cut) for trace_id, each in self._traces.items()]
        return TracesTable(tuple(kept[-limit:] if limit else kept), self.refused)

    def _begun(self, trace_id: str, now_s: float) -> _Gathered | None:
        if trace_id in self._refused:
            return None
        if len(self._traces) >= self._most_traces and not self._drop_oldest(now_s):
            self._refuse(trace_id)
            return None
        trace = self._traces[trace_id] = _Gathered(now_s)
        return trace

    def _has_room(self, now_s: float) -> bool:
        """Whether one more span may be kept; makes room if it can."""
        return self._spans < self._most_spans or self._drop_oldest(now_s)

    def _drop_oldest(self, now_s: float) -> bool:
        """Gives up a trace whose spans are not arriving any more: the oldest whole one, or the oldest of all."""
        arrived = [key for key, each in self._traces.items() if now_s - each.began_s >= self._arriving_s]
        if not arrived:
            return False
        whole = [key for key in arrived if not self._traces[key].is_open]
        chosen = whole[0] if 2 * (len(arrived) - len(whole)) <= self._most_traces and whole else arrived[0]
        given_up = self._traces.pop(chosen)
        self._spans -= len(given_up.spans)
        if given_up.is_open:
            self._ignore(chosen)
        return True

    def _refuse(self, trace_id: str) -> None:
        self.refused += 1
        self._ignore(trace_id)

    def _ignore(self, trace_id: str) -> None:
        """Take no later spans of it: a trace without its first spans misleads."""
        self._refused[trace_id] = None
        if len(self._refused) > self._most_traces:
            self._refused.popitem(last=False)


def _merged(present: TraceSpan, later: TraceSpan) -> TraceSpan:
    """What is known of a span from two reports: the emit of a root, and its outcome."""
    known = {each.kind for each in present.stamps}
    stamps = (*present.stamps, *(each for each in later.stamps if each.kind not in known))
    followed = max(present.followed, later.followed)
    return msgspec.structs.replace(present, stamps=stamps, followed=followed, outcome=present.outcome or later.outcome)
