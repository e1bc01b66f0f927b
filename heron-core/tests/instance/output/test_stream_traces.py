"""Which rows of a spout's stream are traced, where they are after a flush, and what an execution leads to."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import pytest

from heron.api.definition import StreamDefinition
from heron.instance.acks.pending_roots import PendingRoots, RootCallbacks
from heron.instance.metrics.spans import SpanBuffer, TracePoint
from heron.instance.metrics.task_metrics import TaskMetrics, trace_metrics
from heron.instance.output import stream_traces
from heron.instance.output.emitter import SpoutEmitter
from heron.instance.output.out_stream import OutStream
from heron.instance.output.stream_origin import StreamOrigin
from heron.instance.output.stream_routes import (
    ChosenSplitter,
    KeyedEdge,
    KeyMemo,
    KeySplitter,
    ShuffleSplitter,
    StreamRoutes,
)
from heron.instance.output.stream_traces import (
    BUDGET,
    MOST_CHILDREN,
    ChildTraces,
    Execution,
    RootTraces,
)
from heron.instance.output.tracked_stream import RootStream
from heron.instance.queues.data_queue import RootsSettled
from heron.ipc.frames.frame import SegmentKind, parse_segment
from heron.ipc.frames.trace_field import MOST_ENTRIES, TraceEntry, is_traced, parse_trace
from heron.ipc.frames.tracking import RootOutcome
from heron.planner.key_owners import even_owners
from heron.spi.tracing import SpanKind, Stamp, StampKind
from parts import decoded_rows, stream_origin

FIELDS = StreamDefinition("default", ("v",))


class Out:
    """Keeps what is sent."""

    def __init__(self) -> None:
        self.segments: list[bytes] = []

    def put(self, segments: Iterable[bytes]) -> None:
        self.segments += segments

    def has_room(self) -> bool:
        return True

    def wait_for_room(self, timeout_s: float) -> float:
        raise AssertionError(timeout_s)

    def on_linger_over(self, action: Callable[[], None]) -> None:
        """Never calls it."""


def traced_rows(segments: Iterable[bytes]) -> list[tuple[object, tuple[int, ...], TraceEntry]]:
    """Value, destinations and entry of each traced row."""
    found = []
    for each in segments:
        head = parse_segment(each, 0)
        if head.kind == SegmentKind.TUPLES and is_traced(each):
            field = parse_trace(head)
            assert field is not None
            rows = decoded_rows(bytes(each))
            found += [(rows[entry.row][0], head.destinations, entry) for entry in field.entries]
    return found


def keyed() -> StreamRoutes:
    memo = KeyMemo(even_owners(12, (5, 6, 7)), single=True)
    splitter = KeySplitter(memo)
    return StreamRoutes(splitters=(splitter,), keyed=(KeyedEdge((0,), memo, splitter.picks),))


def chosen() -> StreamRoutes:
    splitter = ChosenSplitter()
    return StreamRoutes(splitters=(splitter,), direct_picks=(splitter.picks,), direct_tasks=frozenset({4, 5}))


ROUTES: list[Callable[[], StreamRoutes]] = [
    lambda: StreamRoutes(whole=(2, 3)),
    lambda: StreamRoutes(splitters=(ShuffleSplitter((2, 3, 4), 1),)),
    lambda: StreamRoutes(whole=(9,), splitters=(ShuffleSplitter((2, 3), 0),)),
    keyed,
    chosen,
]


def spout(routes: StreamRoutes, one_in: int, origin: StreamOrigin | None = None) -> tuple[SpoutEmitter, OutStream, Out]:
    origin, out = origin or stream_origin(batch_rows=100), Out()
    emitter = SpoutEmitter(origin, out)
    stream = OutStream(0, FIELDS, routes, origin)
    stream.full_limit = 100
    emitter.trace_roots(one_in)
    emitter.set_streams([stream])
    stream.limit = stream.full_limit
    return emitter, stream, out


@pytest.mark.parametrize("make", ROUTES)
def test_the_traced_row_is_the_one_that_was_chosen(make: Callable[[], StreamRoutes]) -> None:
    """Whatever the grouping: the entry points at the row in every segment that has it."""
    emitter, stream, out = spout(make(), 40)
    traces = stream.traces
    assert isinstance(traces, RootTraces)
    stream.limit = traces.capped(stream.limit, 0)
    row = stream.limit - 1
    direct = 4 if stream.routes.direct_tasks else None
    for number in range(60):
        emitter.emit([number], direct_task=direct)
    emitter.flush()
    found = [each for each in traced_rows(out.segments) if each[0] == row]
    copies = len(stream.routes.whole and (stream.routes.whole,)) + len(stream.routes.splitters)
    assert len(found) == copies
    assert {entry.budget for _, _, entry in found} == {
        (BUDGET - 1) // (len(stream.routes.whole) + len(stream.routes.splitters))
    }
    assert sum(len(decoded_rows(bytes(each))) for each in out.segments) == 60 * copies


def test_a_traced_row_causes_no_flush() -> None:
    """The emit that reaches it only takes the time."""
    emitter, stream, out = spout(StreamRoutes(whole=(2,)), 40)
    assert stream.traces is not None
    stream.limit = stream.traces.capped(stream.limit, 0)
    for number in range(99):
        emitter.emit([number])
    assert not out.segments
    emitter.emit([99])
    assert len(out.segments) == 1


def test_a_traced_row_neither_ends_a_round_of_the_spout_nor_lifts_its_limit() -> None:
    """A round that ends would flush a small batch; at least once, few roots may be free."""
    emitter, stream, out = spout(StreamRoutes(whole=(2,)), 5)
    assert stream.traces is not None
    stream.limit = stream.traces.capped(stream.limit, 0)
    stream.limit_to(30)
    for number in range(29):
        emitter.emit([number])
    assert (emitter.overflowed, out.segments) == (False, [])
    emitter.emit([29])
    assert emitter.overflowed
    assert [len(decoded_rows(bytes(each))) for each in out.segments] == [30]


class FlushedMeanwhile(RootTraces):
    """The gateway flushes at the moment at which a row is found to be traced, if the lock lets it."""

    emitter: SpoutEmitter

    def _trace(self, row: int) -> None:
        if self.emitter.lock.try_acquire():
            try:
                self.emitter.flush()
            finally:
                self.emitter.lock.release()
        super()._trace(row)


def test_the_gateway_takes_no_row_whose_trace_has_only_begun() -> None:
    """The next flush would look for the row in front of its first one, and the task would die."""
    emitter, stream, out = spout(keyed(), 5)
    stream.traces = traces = FlushedMeanwhile(5, emitter.origin.spans)
    traces.emitter = emitter
    stream.limit = traces.capped(stream.limit, 0)
    row = stream.limit - 1
    with emitter.lock.released():
        for number in range(20):
            emitter.emit([number])
    emitter.flush()
    assert [value for value, _, _ in traced_rows(out.segments)] == [row]
    assert sum(len(decoded_rows(bytes(each))) for each in out.segments) == 20


def test_one_in_a_number_is_traced() -> None:
    """One row of each window, in a random place; the next one does not depend on flushes."""
    traces = RootTraces(10, SpanBuffer("s", 1))
    chosen_rows = []
    for _ in range(50):
        chosen_rows.append(traces.capped(10**9, 0) - 1)
        traces.taken(chosen_rows[-1], 1)  # flushed before its emit saw the limit: the next one is chosen
    assert [row // 10 for row in chosen_rows] == list(range(50))
    assert len({row % 10 for row in chosen_rows}) > 3


def test_traces_of_a_task_have_a_distance(monkeypatch: pytest.MonkeyPatch) -> None:
    """With one in 1, a fast spout must not fill the metrics path."""
    now_ns = 0
    monkeypatch.setattr(stream_traces, "stamp_now", lambda kind: Stamp(kind, 0, now_ns, now_ns))
    emitter, _, out = spout(StreamRoutes(whole=(2,)), 1)
    for number in range(1000):
        now_ns = number * 100_000  # 0.1 s in all, twice the distance
        emitter.emit([number])
    emitter.flush()
    first, second = (value for value, _, _ in traced_rows(out.segments))
    assert isinstance(first, int)
    assert second == first + 500
    assert len(emitter.origin.spans.take()) == 2


def test_nothing_is_traced_by_default() -> None:
    """No segment has a flag, and no span is made."""
    emitter, stream, out = spout(StreamRoutes(whole=(2,)), 0)
    for number in range(300):
        emitter.emit([number])
    emitter.flush()
    assert stream.traces is None
    assert not traced_rows(out.segments)
    assert not emitter.origin.spans.take()


def test_tracing_begins_and_ends_while_the_task_runs() -> None:
    """A change of the configuration takes effect in a stream that has emitted already."""
    emitter, stream, out = spout(StreamRoutes(whole=(2,)), 0)
    for number in range(250):
        emitter.emit([number])
    emitter.trace_roots(1)
    for number in range(250):
        emitter.emit([number])
    emitter.flush()
    assert traced_rows(out.segments)
    emitter.trace_roots(0)
    assert stream.traces is None


@pytest.mark.parametrize("make", ROUTES)
def test_a_flush_after_the_end_of_tracing_has_no_traced_row(make: Callable[[], StreamRoutes]) -> None:
    """Even if the flush before it had one: there, a row with that number may not exist, and the task would die."""
    emitter, stream, out = spout(make(), 40)
    assert stream.traces is not None
    direct = 4 if stream.routes.direct_tasks else None
    stream.limit = stream.traces.capped(stream.limit, 0)
    for number in range(60):
        emitter.emit([number], direct_task=direct)
    emitter.flush()
    assert stream.points
    emitter.trace_roots(0)
    before = len(out.segments)
    emitter.emit([60], direct_task=direct)
    emitter.flush()
    assert len(out.segments) > before
    assert not traced_rows(out.segments[before:])


def test_a_row_that_cannot_be_encoded_moves_the_places_behind_it() -> None:
    """The trace stays with its row."""
    origin = stream_origin(batch_rows=100)
    out = Out()
    stream = OutStream(0, FIELDS, StreamRoutes(whole=(2,)), origin)
    stream.rows += [1, lambda: None, 3, 4]
    stream.points = [TracePoint(row, 7, 8, 100, 5) for row in (0, 3)]
    out.put(stream.segments_of(stream.rows))
    assert [value for value, _, _ in traced_rows(out.segments)] == [1, 4]


def test_a_segment_carries_a_bounded_number_of_traced_rows() -> None:
    """The others are counted."""
    origin = stream_origin(batch_rows=100)
    stream = OutStream(0, FIELDS, StreamRoutes(whole=(2,)), origin)
    stream.points = [TracePoint(row, 7, 8, 100, 5) for row in range(20)]
    assert len(traced_rows(stream.segments_of(list(range(20))))) == MOST_ENTRIES
    (gap,) = trace_metrics(origin.spans)
    assert (gap.labels, gap.value) == ({"reason": "cut"}, 20 - MOST_ENTRIES)


def test_a_row_for_more_tasks_than_its_budget_is_not_followed() -> None:
    """Otherwise a grouping `all` would multiply the spans of a trace."""
    origin = stream_origin(batch_rows=100)
    stream = OutStream(0, FIELDS, StreamRoutes(whole=tuple(range(2, 12))), origin)
    stream.points = [TracePoint(0, 7, 8, 9, 5)]
    assert not traced_rows(stream.segments_of([1]))
    assert origin.spans.cut == 1


def test_children_share_a_budget() -> None:
    """The sum of what they may lead to is never more than the parent may; each stream has some of them."""
    execution, one, other = Execution(7, 100), ChildTraces(), ChildTraces()
    execution.follow([(one, range(4, 6))], ended=False)
    execution.follow([(one, range(6, 300)), (other, range(2))], ended=True)
    points = one.points + other.points
    assert [each.row for each in one.points] == [4, 5, 6, 7, 8, 9]
    assert [each.row for each in other.points] == [0, 1]
    assert sum(each.budget for each in points) <= 99
    assert all(each.budget >= 1 for each in points)
    assert (execution.emitted, execution.followed) == (298, MOST_CHILDREN)


def test_the_last_of_a_budget_has_no_children() -> None:
    """A trace ends there."""
    execution, stream = Execution(7, 1), ChildTraces()
    execution.follow([(stream, range(3))], ended=True)
    assert (stream.points, execution.emitted, execution.followed) == ([], 3, 0)


def test_a_budget_reaches_the_end_of_a_long_topology() -> None:
    """With one tuple for each tuple, a trace has a span for each of many components."""
    budget, length = BUDGET, 0
    while True:
        stream = ChildTraces()
        Execution(7, budget).follow([(stream, range(1))], ended=True)
        if not stream.points:
            break
        budget, length = stream.points[0].budget, length + 1
    assert length == BUDGET - 1


def test_too_many_spans_are_dropped_and_counted() -> None:
    """The memory of a task is bounded while it cannot publish."""
    spans = SpanBuffer("c", 1)
    counters = range(1200)
    for counter in counters:
        spans.await_outcome(counter, TracePoint(0, 7, 8, 1, 5))
        spans.settled(counter, "complete")
    assert len(spans.take()) == 1000
    assert spans.dropped == 200
    assert spans.take() == ()


@pytest.mark.parametrize("outcome", [RootOutcome.COMPLETE, RootOutcome.EXPIRED])
def test_the_outcome_of_a_traced_root_is_a_time_of_its_span(outcome: RootOutcome) -> None:
    """At least once: the way of the ack is a hop of the trace."""
    origin, out, pending = stream_origin(batch_rows=100), Out(), PendingRoots(lambda: 0.0)
    emitter = SpoutEmitter(origin, out)
    stream = RootStream(0, FIELDS, StreamRoutes(whole=(2,)), origin, pending)
    emitter.trace_roots(3)
    emitter.set_streams([stream])
    for number in range(12):
        emitter.emit([number], None if number % 4 == 3 else f"id-{number}")
    emitter.flush()
    callbacks = RootCallbacks(pending, TaskMetrics(), lambda *_: None)
    callbacks.spans = origin.spans
    (begun, *_) = origin.spans.take()
    counters = tuple(origin.spans.in_flight)
    assert counters
    around = range(max(0, min(counters) - 12), max(counters) + 12)
    callbacks.settle(RootsSettled(((outcome, around),)))
    ended = origin.spans.take()
    assert [each.outcome for each in ended] == [outcome.name.lower()] * len(counters)
    assert not origin.spans.in_flight
    for each in ended:
        assert each.kind is SpanKind.ROOT
        assert [stamp.kind for stamp in each.stamps] == [StampKind.SETTLED]
    assert (begun.trace_id, begun.span_id) == (ended[0].trace_id, ended[0].span_id)
