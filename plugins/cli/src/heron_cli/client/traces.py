"""Traces of tuples, put together from their spans: when each hop began, and which hops made the tuple late. Pure.

The time of a trace is that of its critical path: from the emit of the root to the span that ended last, and at least
once on to the outcome of the root. A span that is missing leaves its children where their clocks place them.

Times between two hosts are estimates, and their clocks may differ by seconds. The emit and the outcome of a root are of
one clock. So where the estimates lead beyond the outcome, they are made so much shorter that they fit.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import msgspec

from heron.ipc.documents.traces_table import Trace
from heron.spi.tracing import Hop, HopKind, SpanKind, Stamp, StampKind, TraceSpan, elapsed, hops_of, stamp_place

__all__ = ["AssembledTrace", "HopSummary", "TraceStep", "TraceSummary", "assembled", "summary_of"]


@dataclass(frozen=True, slots=True)
class TraceStep:
    """One hop of a trace: a row of the waterfall.

    `start_s` is since the emit of the root. `source` is the component that emitted the tuple, `component` and `task_id`
    are the task that received it. `critical_s` is the part of the duration that is on the critical path.
    `is_estimate`: the clocks of two hosts are between begin and end.
    """

    depth: int
    source: str
    component: str
    task_id: int
    kind: HopKind
    start_s: float
    duration_s: float
    critical_s: float
    is_estimate: bool


@dataclass(frozen=True, slots=True)
class AssembledTrace:
    """A trace. `missing` is the least number of spans that have not arrived; `cut`: tuples were not followed.

    `at_s` is the wall-clock time of the emit. `outcome` is that of a settled root, else "".
    """

    trace_id: str
    component: str
    task_id: int
    at_s: float
    duration_s: float
    steps: tuple[TraceStep, ...]
    missing: int
    cut: bool
    outcome: str
    has_root: bool

    @property
    def complete(self) -> bool:
        """Whether the root and all spans have arrived, as far as is known."""
        return self.has_root and not self.missing


@dataclass(frozen=True, slots=True)
class HopSummary:
    """One kind of hop on one edge: its share of the time of all traces, and the percentiles of its duration in s."""

    source: str
    component: str
    kind: HopKind
    count: int
    share: float
    p50_s: float
    p90_s: float
    p99_s: float


@dataclass(frozen=True, slots=True)
class TraceSummary:
    """All complete traces: their number, the percentiles of their time in s, and their hops, the largest share first.

    `incomplete` is the number of traces that are not in these figures.
    """

    traces: int
    incomplete: int
    p50_s: float
    p90_s: float
    p99_s: float
    hops: tuple[HopSummary, ...]


def assembled(trace: Trace) -> AssembledTrace:
    """The trace as a tree in time. Its spans may come in any order, be missing, or point at each other."""
    return _Assembly(trace).result()


def summary_of(traces: Iterable[AssembledTrace]) -> TraceSummary:
    """The figures of these traces."""
    given = tuple(traces)
    whole = [each for each in given if each.complete]
    total_s = sum(each.duration_s for each in whole) or 1.0
    durations: defaultdict[tuple[str, str, HopKind], list[float]] = defaultdict(list)
    critical: defaultdict[tuple[str, str, HopKind], float] = defaultdict(float)
    for step in (step for each in whole for step in each.steps):
        edge = step.source, step.component, step.kind
        durations[edge].append(step.duration_s)
        critical[edge] += step.critical_s
    hops = [
        HopSummary(*edge, len(found), critical[edge] / total_s, *_percentiles(found))
        for edge, found in durations.items()
    ]
    hops.sort(key=lambda each: -each.share)
    return TraceSummary(
        len(whole), len(given) - len(whole), *_percentiles([each.duration_s for each in whole]), tuple(hops)
    )


def _percentiles(values: Sequence[float]) -> tuple[float, float, float]:
    ordered = sorted(values)
    if not ordered:
        return 0.0, 0.0, 0.0
    p50, p90, p99 = (ordered[max(0, math.ceil(share * len(ordered)) - 1)] for share in (0.5, 0.9, 0.99))
    return p50, p90, p99


@dataclass(slots=True)
class _Placed:
    """A span in time: the begin of each hop, and the end of the last, both in seconds since the emit of the root.

    `estimated_s` is how much of the time from the emit to the end was estimated.
    """

    span: TraceSpan
    depth: int
    parent: _Placed | None
    hops: tuple[Hop, ...]
    starts_s: list[float]
    ended_s: float
    estimated_s: float
    critical_end_s: float = -1.0  # up to here the span is on the critical path

    def at_start_s(self) -> float:
        """When its execution began."""
        return next(
            (start_s for hop, start_s in zip(self.hops, self.starts_s, strict=True) if hop.kind is HopKind.EXECUTE),
            self.ended_s,
        )


class _Assembly:
    """Places the spans of one trace."""

    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        spans = {each.span_id: each for each in trace.spans}
        self._root = next((each for each in spans.values() if each.kind is SpanKind.ROOT), None)
        self._executions = [each for each in spans.values() if each.kind is SpanKind.EXECUTION]
        self._children: defaultdict[str, list[TraceSpan]] = defaultdict(list)
        for each in self._executions:
            self._children[each.parent_id].append(each)
        self._origin = self._first_stamp()
        self._placed: list[_Placed] = []
        self._seen: set[str] = set()
        self._scale = 1.0  # of estimated hops

    def result(self) -> AssembledTrace:
        root = self._root
        settled = _stamp(root, StampKind.SETTLED) if root is not None else None
        outcome = elapsed(self._origin, settled) if self._origin is not None and settled is not None else None
        self._place_all()
        if outcome is not None and (scale := self._fitting_scale(*outcome)) < 1.0:
            self._scale = scale
            self._place_all()
        last = max(self._placed, key=lambda each: each.ended_s, default=None)
        ended_s = last.ended_s if last is not None else 0.0
        self._mark_critical(last)
        steps = [step for each in self._placed for step in _steps(each)]
        duration_s = ended_s
        if root is not None and outcome is not None:
            settled_s, is_estimate = outcome
            duration_s = max(ended_s, settled_s)
            ack_s = duration_s - ended_s
            place = ("", root.component, root.task_id)
            steps.append(TraceStep(0, *place, HopKind.ACK, ended_s, ack_s, ack_s, is_estimate))
        return AssembledTrace(
            self._trace.trace_id,
            root.component if root is not None else "",
            root.task_id if root is not None else 0,
            self._origin.wall_ns / 1e9 if self._origin is not None else 0.0,
            duration_s,
            tuple(steps),
            self._missing(),
            self._is_cut(),
            root.outcome if root is not None else "",
            root is not None and _stamp(root, StampKind.EMITTED) is not None,
        )

    def _first_stamp(self) -> Stamp | None:
        """The emit of the root; without it the earliest emit, by the wall clock."""
        root = _stamp(self._root, StampKind.EMITTED) if self._root is not None else None
        if root is not None:
            return root
        stamps = [stamp for each in self._executions for stamp in each.stamps]
        return min(stamps, key=lambda each: each.wall_ns, default=None)

    def _place_all(self) -> None:
        self._placed, self._seen = [], set()
        if self._root is not None:
            self._place_children(self._root.span_id, None, 0)
        present = {each.span_id for each in self._executions}
        lost = [each for each in self._executions if each.parent_id not in present]
        for each in (*lost, *self._executions):  # those without a parent first; then what only points at each other
            if each.span_id not in self._seen:
                self._place(each, None, 0)

    def _fitting_scale(self, settled_s: float, is_estimate: bool) -> float:
        """The factor of estimated hops with which no span ends after the outcome; 1 where that is not known."""
        if is_estimate or self._missing():
            return 1.0
        fits = (
            max(0.0, settled_s - (each.ended_s - each.estimated_s)) / each.estimated_s
            for each in self._placed
            if each.estimated_s and each.ended_s > settled_s
        )
        return min(fits, default=1.0)

    def _place_children(self, span_id: str, parent: _Placed | None, depth: int) -> None:
        for each in sorted(self._children[span_id], key=lambda each: (each.component, each.task_id, each.span_id)):
            if each.span_id not in self._seen:
                self._place(each, parent, depth)

    def _place(self, span: TraceSpan, parent: _Placed | None, depth: int) -> None:
        self._seen.add(span.span_id)
        hops = tuple(
            msgspec.structs.replace(each, duration_s=self._scale * each.duration_s) if each.is_estimate else each
            for each in hops_of(span.stamps)
        )
        estimated_s = sum(each.duration_s for each in hops if each.is_estimate)
        at_s = self._begin_s(span, parent)
        starts_s = []
        for hop in hops:
            starts_s.append(at_s)
            at_s += hop.duration_s
        estimated_s += parent.estimated_s if parent is not None else 0.0
        placed = _Placed(span, depth, parent, hops, starts_s, at_s, estimated_s)
        self._placed.append(placed)
        self._place_children(span.span_id, placed, depth + 1)

    def _begin_s(self, span: TraceSpan, parent: _Placed | None) -> float:
        """When the tuple of a span was emitted."""
        first = min(span.stamps, key=stamp_place, default=None)
        if first is None or self._origin is None:
            return 0.0
        started = _stamp(parent.span, StampKind.STARTED) if parent is not None else None
        if parent is None or started is None:
            return elapsed(self._origin, first)[0]
        return parent.at_start_s() + elapsed(started, first)[0]

    def _mark_critical(self, last: _Placed | None) -> None:
        """Marks the path to the span that ended last; a parent is on it until it emitted the tuple of the next span."""
        end_s = last.ended_s if last is not None else 0.0
        while last is not None:
            last.critical_end_s = end_s
            end_s = last.starts_s[0] if last.starts_s else last.ended_s
            last = last.parent

    def _missing(self) -> int:
        spans = [*self._executions, *([self._root] if self._root is not None else [])]
        return sum(max(0, each.followed - len(self._children[each.span_id])) for each in spans) + (self._root is None)

    def _is_cut(self) -> bool:
        return self._trace.cut or any(each.emitted > each.followed for each in self._executions)


def _stamp(span: TraceSpan, kind: StampKind) -> Stamp | None:
    return next((each for each in span.stamps if each.kind is kind), None)


def _steps(placed: _Placed) -> Iterator[TraceStep]:
    span = placed.span
    for hop, start_s in zip(placed.hops, placed.starts_s, strict=True):
        critical_s = min(hop.duration_s, max(0.0, placed.critical_end_s - start_s))
        yield TraceStep(
            placed.depth,
            span.source,
            span.component,
            span.task_id,
            hop.kind,
            start_s,
            hop.duration_s,
            critical_s,
            hop.is_estimate,
        )
