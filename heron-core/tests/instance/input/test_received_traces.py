"""A bolt on its task thread that gets traced tuples: its spans, its children, and options that it cannot read."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from heron.api.bolt import Bolt
from heron.api.definition import GroupingKind
from heron.api.tuple import Tuple
from heron.driver_kit.signals import Signals
from heron.instance.bolt_runner import BoltRunner
from heron.instance.gateway.gateway import Gateway
from heron.instance.output.stream_traces import MOST_CHILDREN
from heron.instance.queues.data_queue import TracedFrameArrived
from heron.instance.task import Task
from heron.ipc.envelope import Envelope
from heron.ipc.frames.frame import FRAME_HEADER_BYTES, OptionTag, option, parse_segment
from heron.ipc.frames.trace_field import TraceEntry, parse_trace, stamp_now, trace_option, traced_segment
from heron.kernel.settings import EngineSettings
from heron.spi.tracing import SpanKind, StampKind, TraceSpan
from heron_testing.builders import bolt, physical_plan, spout, stream, subscription, topology
from parts import data_frame, decoded_rows, instance_spec, tuple_segment

BOLT, SINK = 3, 4


class WhenIdle(Signals):
    """Asks to stop as soon as the queue is empty; catches nothing."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway

    @property
    def stop_requested(self) -> bool:
        return self._gateway.data_in.queued_bytes() == 0 and self._gateway.data_in.peek_command() is None


class Bench:
    """A bolt task without sockets, at most once or at least once."""

    def __init__(self, component: type[Bolt], mode: str) -> None:
        definition = topology(
            spout("spout", stream("v")),
            bolt("bolt", subscription("spout", GroupingKind.ALL), outputs=(stream("v"), stream("v", name="other"))),
            bolt(
                "sink", subscription("bolt", GroupingKind.ALL), subscription("bolt", GroupingKind.ALL, stream="other")
            ),
            config={"topology.reliability.mode": mode},
        )
        plan = physical_plan(definition, {"spout": (1,), "bolt": (BOLT,), "sink": (SINK,)})
        spec, settings = instance_spec("bolt", BOLT), EngineSettings()
        self.gateway = Gateway(spec, settings)
        self.task = Task(spec, settings, self.gateway, plan)
        self.runner = BoltRunner(self.task, WhenIdle(self.gateway), component)

    def put(self, segment: bytes) -> None:
        """What the gateway does with a frame that has traced rows."""
        frame = data_frame(segment)
        self.gateway.data_in.put(TracedFrameArrived(stamp_now(StampKind.RECEIVED)))
        self.gateway.data_in.put(frame, len(frame) - FRAME_HEADER_BYTES)

    def run(self) -> tuple[TraceSpan, ...]:
        self.runner.run(ended=False)
        return [record for record in self.gateway.metrics_out if record.spans][-1].spans if self._has_spans() else ()

    def _has_spans(self) -> bool:
        return any(record.spans for record in self.gateway.metrics_out)

    def children(self) -> list[tuple[object, TraceEntry]]:
        """The traced rows that were emitted: value and entry."""
        found = []
        for item in self.gateway.data_out.items:
            for data in () if isinstance(item, Envelope) else item[0]:
                field = parse_trace(parse_segment(data, 0))
                entries = field.entries if field else ()
                found += [(decoded_rows(bytes(data))[entry.row][0], entry) for entry in entries]
        return found


def tuples(count: int, rows: Sequence[int], budget: int = 100) -> bytes:
    entries = [TraceEntry(7 + row, 5, row, budget, 1) for row in rows]
    values = [(number,) for number in range(count)]
    return traced_segment(tuple_segment(values, (BOLT,), options=trace_option(entries)))


class Twice(Bolt):
    """Emits two tuples for each, anchored or not, and acks it."""

    outputs = ("v",)

    def process(self, tup: Tuple) -> None:
        number = tup.values[0]
        self.emit([f"{number} a"], anchors=[tup])
        self.emit([f"{number} b"], stream="other")
        self.ack(tup)


@pytest.mark.parametrize("mode", ["ATMOST_ONCE", "ATLEAST_ONCE"])
def test_a_traced_tuple_has_a_span_and_its_emits_are_its_children(mode: str) -> None:
    """The other tuples of the batch have neither."""
    bench = Bench(Twice, mode)
    bench.put(tuples(50, [20, 33]))
    first, second = bench.run()
    assert [(each.trace_id, each.parent_id, each.kind) for each in (first, second)] == [
        (f"{27:016x}", f"{5:016x}", SpanKind.EXECUTION),
        (f"{40:016x}", f"{5:016x}", SpanKind.EXECUTION),
    ]
    assert (first.component, first.task_id, first.source, first.source_task, first.stream, first.rows) == (
        "bolt",
        BOLT,
        "spout",
        1,
        "default",
        50,
    )
    assert (first.emitted, first.followed) == (2, 2)
    kinds = [each.kind for each in first.stamps]
    assert kinds == [
        StampKind.EMITTED,
        StampKind.FLUSHED,
        StampKind.RECEIVED,
        StampKind.STARTED,
        StampKind.ENDED,
    ]
    children = bench.children()
    assert sorted(str(value) for value, _ in children) == ["20 a", "20 b", "33 a", "33 b"]
    parents = {str(value): entry.parent_id for value, entry in children}
    assert parents["20 a"] == parents["20 b"] == int(first.span_id, 16)
    assert parents["33 a"] == int(second.span_id, 16)


class Many(Bolt):
    """Emits a thousand tuples for each, so that a flush comes while it is executed."""

    outputs = ("v",)

    def process(self, tup: Tuple) -> None:
        for number in range(1000):
            self.emit([number])


def test_a_large_fan_out_is_cut_and_says_so() -> None:
    """A few children are followed, also those of a flush that comes before the execution has ended."""
    bench = Bench(Many, "ATMOST_ONCE")
    bench.put(tuples(1, [0]))
    (span,) = bench.run()
    assert span.emitted == 1000
    assert 0 < span.followed <= MOST_CHILDREN
    children = bench.children()
    assert len(children) == span.followed
    assert sum(entry.budget for _, entry in children) < 100


class Once(Bolt):
    """Emits one tuple for each."""

    outputs = ("v",)

    def process(self, tup: Tuple) -> None:
        self.emit([tup.values[0]])


def test_only_the_rows_of_a_traced_execution_are_its_children() -> None:
    """The first emit of a task flushes at once. The rows of later flushes have nothing to do with it."""
    bench = Bench(Once, "ATMOST_ONCE")
    bench.put(tuples(5, [0]))
    (span,) = bench.run()
    assert (span.emitted, span.followed) == (1, 1)
    assert [value for value, _ in bench.children()] == [0]
    bench.put(tuple_segment([(5,), (6,)], (BOLT,)))
    bench.run()
    assert [value for value, _ in bench.children()] == [0]


def test_the_last_span_of_a_budget_has_no_children() -> None:
    """A trace ends there, however deep the topology is."""
    bench = Bench(Twice, "ATMOST_ONCE")
    bench.put(tuples(3, [1], budget=1))
    (span,) = bench.run()
    assert (span.emitted, span.followed, bench.children()) == (2, 0, [])


class Failing(Bolt):
    """Raises."""

    outputs = ("v",)

    def process(self, tup: Tuple) -> None:
        msg = f"no {tup.values[0]}"
        raise ValueError(msg)


@pytest.mark.usefixtures("capsys")
def test_an_execution_that_raises_has_a_span() -> None:
    """Its time counts, and the next tuples are executed."""
    bench = Bench(Failing, "ATMOST_ONCE")
    bench.put(tuples(3, [1]))
    (span,) = bench.run()
    assert span.stamps[-1].kind is StampKind.ENDED
    assert bench.task.metrics.executed_total() == 3
    assert bench.task.metrics.failed == 3


@pytest.mark.parametrize("value", [b"", b"x" * 176, b"\xff" * 176, b"x" * 100_000])
def test_an_option_that_cannot_be_read_is_counted_and_the_tuples_are_processed(value: bytes) -> None:
    """A peer of another version must not lose data by its traces."""
    bench = Bench(Twice, "ATMOST_ONCE")
    bench.put(tuple_segment([(1,), (2,)], (BOLT,), options=option(OptionTag.TRACE, value)))
    assert bench.run() == ()
    assert bench.task.metrics.executed_total() == 2
    assert bench.task.spans.malformed == 1


def test_repeated_rows_of_an_option_have_a_span_each() -> None:
    """A strange option must neither stop the batch nor execute a tuple twice."""
    bench = Bench(Twice, "ATMOST_ONCE")
    bench.put(tuples(5, [2, 2, 2, 0]))
    spans = bench.run()
    assert len(spans) == 4
    assert bench.task.metrics.executed_total() == 5
