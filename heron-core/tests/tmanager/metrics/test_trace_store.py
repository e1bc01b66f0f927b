"""The traces that a topology manager keeps: bounded, whatever arrives in whatever order."""

from __future__ import annotations

import random

import pytest

from heron.errors import RemoteProtocolError
from heron.ipc.documents.traces_table import decode_traces, encode_traces
from heron.spi.tracing import SpanKind, Stamp, StampKind, TraceSpan
from heron.tmanager.metrics.trace_store import TraceStore


def span(trace: int, number: int, kind: SpanKind = SpanKind.EXECUTION, **changes: object) -> TraceSpan:
    fields: dict[str, object] = {"stamps": (Stamp(StampKind.STARTED, 1, number, number),)} | changes
    return TraceSpan(f"{trace:016x}", f"{number:016x}", "", kind, "bolt", 3, **fields)  # type: ignore[arg-type]


def test_spans_are_gathered_by_trace_in_any_order() -> None:
    """They come from several processes, and some arrive twice."""
    spans = [span(trace, number) for trace in (1, 2, 3) for number in range(5)]
    mixed = [*spans, *spans[:7]]
    random.Random(4).shuffle(mixed)
    store = TraceStore()
    for each in mixed:
        store.add([each], 0.0)
    table = store.table()
    assert {each.trace_id: {one.span_id for one in each.spans} for each in table.traces} == {
        f"{trace:016x}": {f"{number:016x}" for number in range(5)} for trace in (1, 2, 3)
    }


def test_the_outcome_of_a_root_completes_its_span() -> None:
    """The emit and the outcome are two reports; either may come first."""
    emitted = span(1, 7, SpanKind.ROOT, stamps=(Stamp(StampKind.EMITTED, 1, 1, 1),))
    settled = span(1, 7, SpanKind.ROOT, stamps=(Stamp(StampKind.SETTLED, 1, 9, 9),), outcome="failed")
    for order in ((emitted, settled), (settled, emitted)):
        store = TraceStore()
        store.add(order, 0.0)
        ((found,),) = (each.spans for each in store.table().traces)
        assert {each.kind for each in found.stamps} == {StampKind.EMITTED, StampKind.SETTLED}
        assert found.outcome == "failed"


def test_a_trace_is_cut_at_a_bound_and_says_so() -> None:
    """A peer that sends without end fills no memory."""
    store = TraceStore()
    store.add([span(1, number) for number in range(1000)], 0.0)
    (trace,) = store.table().traces
    assert (len(trace.spans), trace.cut) == (256, True)


def test_the_oldest_trace_leaves_when_it_has_arrived() -> None:
    """A full store keeps what is still arriving, and counts what it refuses."""
    store = TraceStore(most_traces=2, arriving_s=5.0)
    store.add([span(1, 1)], 0.0)
    store.add([span(2, 1)], 1.0)
    store.add([span(3, 1), span(3, 2)], 2.0)
    assert store.refused == 1
    store.add([span(4, 1)], 5.5)
    store.add([span(3, 3)], 20.0)  # the rest of a refused trace
    assert [each.trace_id[-1] for each in store.table().traces] == ["2", "4"]
    assert store.refused == 1


def test_a_trace_that_waits_outlives_whole_ones() -> None:
    """The slowest tuples are those that people look for; they wait in a queue while many others pass."""
    store = TraceStore(most_traces=4, arriving_s=5.0)
    store.add([span(1, 1, SpanKind.ROOT, followed=1)], 0.0)
    for number in range(2, 20):
        store.add([span(number, 1, SpanKind.ROOT, followed=1), span(number, 2)], 10.0 * number)
    assert [int(each.trace_id, 16) for each in store.table().traces] == [1, 17, 18, 19]
    store.add([span(1, 2)], 200.0)  # its tuple was executed at last
    store.add([span(20, 1)], 201.0)
    assert 1 not in [int(each.trace_id, 16) for each in store.table().traces]


def test_traces_that_never_end_take_half_of_the_places() -> None:
    """Then the oldest of all leaves, and its late span begins no trace without a root."""
    store = TraceStore(most_traces=4, arriving_s=5.0)
    for number in range(1, 4):
        store.add([span(number, 1, SpanKind.ROOT, followed=1)], float(number))
    for number in range(4, 8):
        store.add([span(number, 1, SpanKind.ROOT, followed=1), span(number, 2)], 10.0 * number)
    store.add([span(1, 2)], 100.0)
    assert [int(each.trace_id, 16) for each in store.table().traces] == [2, 3, 6, 7]


def test_all_traces_together_have_a_bound() -> None:
    """Traces with many spans leave earlier; while they arrive, further spans are cut."""
    store = TraceStore(most_spans=10, arriving_s=5.0)
    store.add([span(1, number) for number in range(8)], 0.0)
    store.add([span(2, number) for number in range(8)], 1.0)
    assert [(len(each.spans), each.cut) for each in store.table().traces] == [(8, False), (2, True)]
    store.add([span(3, number) for number in range(8)], 5.5)
    assert [(int(each.trace_id, 16), len(each.spans)) for each in store.table().traces] == [(2, 2), (3, 8)]


def test_the_newest_are_asked_for() -> None:
    """A page shows few traces."""
    store = TraceStore()
    for trace in range(10):
        store.add([span(trace, 1)], 0.0)
    assert [int(each.trace_id, 16) for each in store.table(3).traces] == [7, 8, 9]


def test_a_table_is_read_as_it_was_written() -> None:
    """All fields, also of a root."""
    store = TraceStore()
    store.add([span(1, 1, source="a", source_task=4, stream="s", rows=5, emitted=6, followed=2)], 0.0)
    store.add([span(1, 2, SpanKind.ROOT, outcome="expired")], 0.0)
    assert decode_traces(encode_traces(store.table())) == store.table()


def test_kinds_of_a_newer_version_are_skipped() -> None:
    """The rest of the trace is shown."""
    store = TraceStore()
    store.add([span(1, 1), span(1, 2)], 0.0)
    document = encode_traces(store.table()).replace(b'"kind":"execution"', b'"kind":"link"', 1)
    ((found,),) = (each.spans for each in decode_traces(document).traces)
    assert found.span_id.endswith("2")
    document = encode_traces(store.table()).replace(b'"kind":"started"', b'"kind":"teleported"', 1)
    assert decode_traces(document).traces[0].spans[0].stamps == ()


@pytest.mark.parametrize("document", [b"", b"[]", b'{"traces":[{}]}', b'{"traces":7}', b"\xff"])
def test_another_document_is_an_error(document: bytes) -> None:
    """The command says that the topology has another version."""
    with pytest.raises(RemoteProtocolError, match="cannot be read"):
        decode_traces(document)
