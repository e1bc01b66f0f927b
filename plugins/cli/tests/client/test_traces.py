"""Traces put together: places of hops in time, the critical path, and spans that are missing or point in circles."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from heron.ipc.documents.traces_table import Trace
from heron.spi.tracing import HopKind, SpanKind, Stamp, StampKind, TraceSpan
from heron_cli.client.traces import AssembledTrace, assembled, summary_of
from heron_cli.commands.trace import chosen_trace
from heron_cli.view.trace_text import format_duration, no_traces_text, trace_text

START_NS = 1_700_000_000_000_000_000
WAY = (
    StampKind.EMITTED,
    StampKind.FLUSHED,
    StampKind.SENT,
    StampKind.ROUTED,
    StampKind.FORWARDED,
    StampKind.RECEIVED,
    StampKind.STARTED,
    StampKind.ENDED,
)


def stamp(kind: StampKind, ms: float, clock: int = 1, wall_ms: float | None = None) -> Stamp:
    wall = START_NS + int((ms if wall_ms is None else wall_ms) * 1e6)
    return Stamp(kind, clock, 10**12 + int(ms * 1e6), wall)


def root(settled_ms: float | None = None, outcome: str = "complete") -> TraceSpan:
    stamps: tuple[Stamp, ...] = (stamp(StampKind.EMITTED, 0),)
    if settled_ms is not None:
        stamps = (*stamps, stamp(StampKind.SETTLED, settled_ms))
    given = outcome if settled_ms is not None else ""
    return TraceSpan("t", "r", "", SpanKind.ROOT, "lines", 1, stamps, emitted=1, followed=1, outcome=given)


def execution(span: str, parent: str, component: str, *times_ms: float, **changes: object) -> TraceSpan:
    """A span with these times of `WAY`."""
    stamps = tuple(stamp(kind, ms) for kind, ms in zip(WAY, times_ms, strict=True))
    made = TraceSpan("t", span, parent, SpanKind.EXECUTION, component, 2, stamps, source="from", stream="default")
    return replace(made, **changes)


SPLIT = execution("s", "r", "split", 0, 10, 11, 12, 13, 14, 20, 25, emitted=2, followed=2)
COUNT = execution("c", "s", "count", 25, 30, 31, 32, 33, 34, 35, 80)
FAST = execution("f", "s", "count", 25, 30, 31, 32, 33, 34, 35, 36)


def trace(*spans: TraceSpan, cut: bool = False) -> AssembledTrace:
    return assembled(Trace("t", spans, cut))


def critical(found: AssembledTrace) -> dict[tuple[str, HopKind], int]:
    return {(each.component, each.kind): round(1000 * each.critical_s) for each in found.steps if each.critical_s > 0}


def test_the_critical_path_is_the_time_of_the_trace() -> None:
    """Where do the 80 ms go: the hops of the span that ended last, and of those that led to it."""
    found = trace(root(), SPLIT, COUNT, FAST)
    assert found.duration_s == pytest.approx(0.080)
    assert found.complete
    assert critical(found) == {
        ("split", HopKind.EMIT_BATCH): 10,
        ("split", HopKind.GATEWAY): 1,
        ("split", HopKind.WIRE): 1,
        ("split", HopKind.OUTLET): 1,
        ("split", HopKind.QUEUE): 6,
        ("split", HopKind.EXECUTE): 5,
        ("count", HopKind.EMIT_BATCH): 5,
        ("count", HopKind.GATEWAY): 1,
        ("count", HopKind.WIRE): 1,
        ("count", HopKind.OUTLET): 1,
        ("count", HopKind.QUEUE): 1,
        ("count", HopKind.EXECUTE): 45,
    }
    assert sum(each.critical_s for each in found.steps) == pytest.approx(found.duration_s)
    assert found.steps[0].depth == 0
    assert {each.depth for each in found.steps if each.component == "count"} == {1}


def test_the_order_of_arrival_does_not_matter() -> None:
    """Each process reports when its period is over."""
    spans = [root(90), SPLIT, COUNT, FAST]
    expected = trace(*spans)
    for seed in range(10):
        random.Random(seed).shuffle(spans)
        assert trace(*spans) == expected


def test_a_parent_is_on_the_critical_path_until_it_emitted() -> None:
    """What it did afterwards made nothing late."""
    early = execution("c", "s", "count", 22, 30, 31, 32, 33, 34, 35, 80)
    found = trace(root(), replace(SPLIT, followed=1), early)
    assert critical(found)["split", HopKind.EXECUTE] == 2
    assert sum(each.critical_s for each in found.steps) == pytest.approx(0.080)


def test_an_ack_is_the_last_hop() -> None:
    """At least once, the time of a root ends with its outcome."""
    found = trace(root(95, "failed"), SPLIT, COUNT, FAST)
    assert (found.steps[-1].kind, round(1000 * found.steps[-1].duration_s)) == (HopKind.ACK, 15)
    assert found.duration_s == pytest.approx(0.095)
    assert found.outcome == "failed"
    assert sum(each.critical_s for each in found.steps) == pytest.approx(0.095)


@pytest.mark.parametrize("missing", ["r", "s", "c"])
def test_a_span_that_is_missing_is_counted(missing: str) -> None:
    """The others stay where their clocks place them, and the trace counts in no figure."""
    found = trace(*(each for each in (root(), SPLIT, COUNT, FAST) if each.span_id != missing))
    assert found.missing >= 1
    assert not found.complete
    places = {round(1000 * each.start_s) for each in found.steps if each.component == "count"}
    assert max(places) == 35
    summary = summary_of([found, trace(root(), SPLIT, COUNT, FAST)])
    assert (summary.traces, summary.incomplete) == (1, 1)


def test_tuples_that_were_not_followed_are_said() -> None:
    """The shape of a huge fan-out is not known."""
    assert not trace(root(), SPLIT, COUNT, FAST).cut
    assert trace(root(), replace(SPLIT, emitted=1000), COUNT, FAST).cut
    assert trace(root(), SPLIT, COUNT, FAST, cut=True).cut


def test_time_between_two_hosts_is_an_estimate() -> None:
    """Hops on the other host are exact again."""
    there = tuple(
        each if each.kind in WAY[:5] else replace(each, clock=9, monotonic_ns=each.monotonic_ns - 7_000)
        for each in COUNT.stamps
    )
    found = trace(root(), SPLIT, replace(COUNT, stamps=there), FAST)
    of_count = [each for each in found.steps if each.is_estimate or each.duration_s > 0.04]
    assert [(each.kind, each.is_estimate) for each in of_count] == [(HopKind.WIRE, True), (HopKind.EXECUTE, False)]
    assert found.duration_s == pytest.approx(0.080)


@pytest.mark.parametrize("ahead_ms", [5_000.0, -5_000.0])
def test_clocks_that_differ_do_not_change_the_time_of_a_settled_trace(ahead_ms: float) -> None:
    """Emit and outcome are of one clock: 90 ms are 90 ms, and what happened on one host keeps its duration."""
    there = tuple(
        each if each.kind in WAY[:5] else replace(each, clock=9, wall_ns=each.wall_ns + int(ahead_ms * 1e6))
        for each in COUNT.stamps
    )
    found = trace(root(90), SPLIT, replace(COUNT, stamps=there), FAST)
    assert found.complete
    assert found.duration_s == pytest.approx(0.090)
    assert sum(each.critical_s for each in found.steps) == pytest.approx(0.090)
    assert critical(found)["count", HopKind.EXECUTE] == 45
    assert all(each.duration_s <= 0.090 for each in found.steps)


def test_work_after_the_outcome_keeps_its_time() -> None:
    """A tuple that failed may still be executed; its times are of one clock."""
    found = trace(root(40, "failed"), SPLIT, COUNT, FAST)
    assert found.duration_s == pytest.approx(0.080)


def test_spans_that_point_at_each_other_are_shown_once() -> None:
    """A peer may send anything; no walk may go round in circles."""
    first, second = replace(COUNT, span_id="a", parent_id="b"), replace(COUNT, span_id="b", parent_id="a")
    own = replace(COUNT, span_id="x", parent_id="x")
    found = trace(root(), first, second, own, replace(root(), span_id="q", parent_id="q"))
    assert len(found.steps) == 3 * 7
    assert found.missing >= 1


@given(
    st.lists(
        st.tuples(
            st.integers(0, 6),
            st.integers(0, 6),
            st.sampled_from(SpanKind),
            st.lists(st.tuples(st.sampled_from(StampKind), st.integers(0, 2), st.integers(0, 2**62)), max_size=5),
            st.integers(0, 20),
        ),
        max_size=12,
    )
)
def test_any_spans_are_put_together(
    given_spans: list[tuple[int, int, SpanKind, list[tuple[StampKind, int, int]], int]],
) -> None:
    """No time is negative, no step is lost, and the critical path is no longer than the trace."""
    spans = [
        TraceSpan(
            "t",
            str(span),
            str(parent),
            kind,
            "c",
            1,
            tuple(Stamp(each, clock, time, time) for each, clock, time in stamps),
            followed=followed,
        )
        for span, parent, kind, stamps, followed in given_spans
    ]
    found = trace(*spans)
    assert all(each.start_s >= 0 and each.duration_s >= 0 for each in found.steps)
    assert sum(each.critical_s for each in found.steps) <= found.duration_s * 1.000001 + 1e-6
    summary_of([found])
    trace_text(summary_of([found]), found, slowest=True)


def test_a_summary_has_the_largest_share_first() -> None:
    """Shares are of the time of all traces; percentiles are of all hops, also those that made nothing late."""
    summary = summary_of([trace(root(), SPLIT, COUNT, FAST) for _ in range(10)])
    assert summary.traces == 10
    assert summary.p99_s == pytest.approx(0.080)
    first = summary.hops[0]
    assert (first.component, first.kind, first.count) == ("count", HopKind.EXECUTE, 20)
    assert first.share == pytest.approx(45 / 80)
    assert first.p50_s == pytest.approx(0.001)
    assert first.p99_s == pytest.approx(0.045)
    assert sum(each.share for each in summary.hops) == pytest.approx(1)


def test_no_traces_have_no_figures() -> None:
    """A command on a topology that traces nothing says how to begin."""
    assert (summary_of([]).traces, summary_of([]).p50_s) == (0, 0.0)
    assert chosen_trace((), slowest=True) is None
    assert "topology.trace.one.in=10000" in no_traces_text("words")


def test_the_slowest_or_the_newest_complete_trace_is_chosen() -> None:
    """An incomplete one only if there is no other."""
    slow, new, part = trace(root(95), SPLIT, COUNT, FAST), trace(root(81), SPLIT, COUNT, FAST), trace(SPLIT)
    assert chosen_trace((slow, new, part), slowest=True) is slow
    assert chosen_trace((slow, new, part), slowest=False) is new
    assert chosen_trace((part,), slowest=False) is part


def test_the_text_answers_where_the_time_goes() -> None:
    """A table of shares, then a bar for each hop at its place."""
    found = trace(root(90), SPLIT, replace(COUNT, emitted=5), FAST)
    text = str(trace_text(summary_of([found]), found, slowest=True))
    table = text.split("the slowest", maxsplit=1)[0].splitlines()
    assert table[0] == "1 trace: p50 90.0 ms, p90 90.0 ms, p99 90.0 ms"
    assert table[2].split()[:4] == ["50%", "execute", "1.000", "ms"]
    assert "of lines/1" in text
    assert "complete" in text
    assert "not all followed" in text
    (slow,) = [line for line in text.splitlines() if "execute" in line and "45.0 ms" in line and "█" in line]
    assert slow.strip().startswith("from → count/2")
    assert slow.count("█") == 20


@pytest.mark.parametrize(
    ("seconds", "expected"), [(0.0000123, "0.012 ms"), (0.0824, "82.4 ms"), (0.0012, "1.200 ms"), (1.204, "1.20 s")]
)
def test_durations_have_a_unit(seconds: float, expected: str) -> None:
    """Microseconds and seconds stand in one column."""
    assert format_duration(seconds) == expected
