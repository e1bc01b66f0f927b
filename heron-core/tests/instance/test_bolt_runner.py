"""A bolt on its task thread, which gets frame after frame: order, kept tuples, failures, garbage, the end."""

from __future__ import annotations

import gc
import threading
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import pytest

from heron.api.bolt import Bolt
from heron.api.definition import GroupingKind
from heron.api.tuple import Tuple
from heron.driver_kit.signals import Signals
from heron.instance.bolt_runner import BoltRunner
from heron.instance.gateway.gateway import Gateway
from heron.instance.queues.data_queue import PlanReceived
from heron.instance.runner import ComponentStoppedError
from heron.instance.task import Task
from heron.ipc import control_pb2 as pb
from heron.ipc.envelope import Envelope
from heron.ipc.frames.frame import (
    FRAME_HEADER_BYTES,
    Encoding,
    Marker,
    OptionTag,
    SegmentKind,
    marker_segment,
    option,
    parse_segment,
)
from heron.kernel.settings import EngineSettings
from heron.planner.physical_plan import TaskPlan
from heron.spi.metricsink import Metric
from heron_testing.builders import bolt, physical_plan, spout, stream, subscription, topology
from heron_testing.fake_clock import FakeClock
from parts import data_frame, decoded_rows, end_marker, instance_spec, tuple_segment

SOURCES = (1, 2)
BOLT = 3
SINK = 4


class WhenIdle(Signals):
    """Asks to stop as soon as the queue has been empty for a moment; catches nothing."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway

    @property
    def stop_requested(self) -> bool:
        return self._gateway.data_in.queued_bytes() == 0 and self._gateway.data_in.peek_command() is None


def tuples(values: Sequence[tuple[object, ...]], source: int = 1, **changes: object) -> bytes:
    return tuple_segment(values, (BOLT,), source_task=source, **changes)


def end(source: int) -> bytes:
    return end_marker((BOLT,), source)


class Bench:
    """A bolt task without sockets: the test puts frames into its data-in queue and reads its data-out queue."""

    def __init__(
        self, component: type[Bolt], config: dict[str, object] | None = None, settings: EngineSettings | None = None
    ) -> None:
        both = [subscription("spout", GroupingKind.ALL, stream=name) for name in ("default", "b")]
        definition = topology(
            spout("spout", stream("batch", "number"), stream(name="b"), parallelism=2),
            bolt("bolt", *both, outputs=(stream("value"),)),
            bolt("sink", subscription("bolt", GroupingKind.ALL)),
            config=config,
        )
        plan = physical_plan(definition, {"spout": SOURCES, "bolt": (BOLT,), "sink": (SINK,)})
        spec = instance_spec("bolt", BOLT)
        settings = settings or EngineSettings()
        self.gateway = Gateway(spec, settings)
        self.task = Task(spec, settings, self.gateway, plan)
        self.runner = BoltRunner(self.task, WhenIdle(self.gateway), component)

    def put(self, *segments: bytes) -> None:
        frame = data_frame(*segments)
        self.gateway.data_in.put(frame, len(frame) - FRAME_HEADER_BYTES)

    def run(self) -> Bolt:
        self.runner.run(ended=False)
        return self.runner.component

    def record(self) -> tuple[Metric, ...]:
        return self.task.telemetry.record(self.runner.emitter).metrics

    def output(self) -> list[object]:
        """The emitted values, ``"END"`` for the marker, and the phase of each report."""
        found: list[object] = []
        for item in self.gateway.data_out.items:
            if isinstance(item, Envelope):
                found.append(item.task_report.phase)
                continue
            for data in item[0]:
                if parse_segment(data, 0).kind == SegmentKind.MARKER:
                    found.append("END")
                else:
                    found += [row[0] for row in decoded_rows(data)]
        return found


class Keeping(Bolt):
    """Keeps the tuples that `keeps` selects, and records their values."""

    keeps: Callable[[int], bool] = staticmethod(lambda _number: True)
    acks = False

    def __init__(self, delegate: object = None) -> None:
        super().__init__(delegate)  # type: ignore[arg-type]  # the engine's
        self.kept: list[Tuple] = []
        self.expected: list[tuple[object, ...]] = []
        self.objects: set[int] = set()
        self.count = 0

    def process(self, tup: Tuple) -> None:
        self.objects.add(id(tup))
        self.count += 1
        if self.keeps(tup.values[1]):
            self.kept.append(tup)
            self.expected.append((tup.component, tup.stream, tup.task, tup.values))
        if self.acks:
            self.ack(tup)


def with_batches(bench: Bench, batches: int = 30, rows: int = 40) -> Keeping:
    for batch in range(batches):
        bench.put(tuples([(batch, number) for number in range(rows)], source=1 + batch % 2))
    bolt = bench.run()
    assert isinstance(bolt, Keeping)
    return bolt


@pytest.mark.parametrize("keeps", [lambda _number: True, lambda number: number % 7 == 0, lambda number: number == 39])
@pytest.mark.parametrize("acks", [True, False])
def test_kept_tuples_never_change(keeps: Callable[[int], bool], acks: bool) -> None:
    """The engine reuses tuple objects, and a window bolt must never see a kept tuple change."""
    bolt_class = type("Bolt", (Keeping,), {"keeps": staticmethod(keeps), "acks": acks})
    bolt = with_batches(Bench(bolt_class))
    assert [(tup.component, tup.stream, tup.task, tup.values) for tup in bolt.kept] == bolt.expected
    assert len({id(tup) for tup in bolt.kept}) == len(bolt.kept)
    assert bolt.count == 1200


@pytest.mark.parametrize("acks", [True, False])
def test_objects_are_reused_unless_they_are_kept(acks: bool) -> None:
    """With a stray reference in the engine, for example of an ack, each batch would silently make new objects."""
    bolt_class = type("Bolt", (Keeping,), {"keeps": staticmethod(lambda _number: False), "acks": acks})
    bolt = with_batches(Bench(bolt_class))
    assert len(bolt.objects) == 2 * 40


class Passing(Bolt):
    """Emits and acks each tuple."""

    def process(self, tup: Tuple) -> None:
        self.emit([tup.values[0]], anchors=[tup])
        self.ack(tup)


@pytest.mark.parametrize("mode", ["ATMOST_ONCE", "ATLEAST_ONCE"])
def test_100_000_tuples_cause_no_collection_and_leave_no_cycle(
    collected: Callable[..., AbstractContextManager[list[int]]], mode: str
) -> None:
    """All objects of a batch are freed with it."""
    batch = tuples([(number, number) for number in range(1000)])

    def work() -> Bench:
        all_fits = EngineSettings(out_queue_bytes=1 << 30, queue_least_bytes=1 << 30)
        bench = Bench(Passing, {"topology.reliability.mode": mode}, all_fits)
        for _ in range(100):
            bench.put(batch)
        bench.run()
        assert bench.task.metrics.executed_total() == 100_000
        return bench

    work()  # loads modules that are loaded at their first use
    with collected() as generations:
        bench = work()
        assert generations == []
        assert gc.collect() < 100
        assert bench is not None  # keeps it alive until here: its own cycles do not count


class FailingKeeping(Keeping):
    """Fails for some tuples, and keeps the exceptions."""

    def __init__(self, delegate: object = None) -> None:
        super().__init__(delegate)
        self.errors: list[ValueError] = []

    def process(self, tup: Tuple) -> None:
        super().process(tup)
        if tup.values[1] % 10 == 3:
            error = ValueError(tup.values)
            self.errors.append(error)
            raise error


def test_a_failure_affects_only_its_tuple(capsys: pytest.CaptureFixture[str]) -> None:
    """The rest of the batch is processed in order, and the tuples in kept exceptions stay intact."""
    bench = Bench(FailingKeeping)
    bolt = with_batches(bench)
    assert isinstance(bolt, FailingKeeping)
    assert bolt.count == 1200
    assert bench.task.metrics.failed == 120 == len(bolt.errors)
    held = [_innermost(error)["tup"] for error in bolt.errors]
    assert [tup.values for tup in held] == [error.args[0] for error in bolt.errors]
    assert [(tup.component, tup.stream, tup.task, tup.values) for tup in bolt.kept] == bolt.expected
    assert capsys.readouterr().err.count("Traceback") == 1
    gc.collect()


def _innermost(error: ValueError) -> dict[str, Any]:
    trace = error.__traceback__
    assert trace is not None
    while trace.tb_next is not None:
        trace = trace.tb_next
    return trace.tb_frame.f_locals


def test_stop_on_error_stops_at_once(capsys: pytest.CaptureFixture[str]) -> None:
    """`topology.on.error: stop` ends the instance with the line of the failure."""
    bench = Bench(FailingKeeping, {"topology.on.error": "stop"})
    with pytest.raises(ComponentStoppedError, match=r"process with Tuple\(.*raised ValueError"):
        with_batches(bench)
    assert capsys.readouterr().err


class Reporting(Bolt):
    """Reports an error for some tuples, and goes on with the call."""

    outputs = ("value",)

    def process(self, tup: Tuple) -> None:
        if tup.values[1] % 2:
            self.report_error(ValueError(f"odd: {tup.values[1]}"))
        self.emit([tup.values[1]])


def test_a_reported_error_counts_and_the_call_goes_on(capsys: pytest.CaptureFixture[str]) -> None:
    """Parts of a call that succeed are not lost by another part that fails."""
    bench = Bench(Reporting)
    bench.put(tuples([(0, number) for number in range(4)]))
    bench.run()
    assert bench.output()[1:] == [0, 1, 2, 3]  # behind the report
    assert (bench.task.errors.count, bench.task.metrics.failed) == (2, 0)
    assert "task 3: the component raised ValueError: odd: 1" in capsys.readouterr().err


def test_a_reported_error_is_raised_if_errors_stop(capsys: pytest.CaptureFixture[str]) -> None:
    """`topology.on.error: stop` has the same meaning for it."""
    bench = Bench(Reporting, {"topology.on.error": "stop"})
    bench.put(tuples([(0, 1)]))
    with pytest.raises(ComponentStoppedError, match=r"process with Tuple\(.*raised ValueError: odd: 1"):
        bench.run()
    assert capsys.readouterr().err


class Echo(Bolt):
    """Emits each number, and a word in `finish`."""

    outputs = ("value",)

    def process(self, tup: Tuple) -> None:
        self.emit([tup.values[1] if tup.values else "signal"])

    def finish(self) -> None:
        self.emit(["finished"])


def test_the_end_comes_when_all_upstream_tasks_have_ended() -> None:
    """The order is one call of `finish`, its output, the marker, the report; repeated markers have no effect."""
    bench = Bench(Echo)
    bench.put(end(1), tuples([(0, 5)], source=2), end(1))
    bench.put(end(2))
    bench.put(tuples([(0, 6)], source=2))  # sent again by a task that was restarted
    bench.run()
    assert bench.output() == [pb.TASK_PHASE_RUNNING, 5, "finished", "END", pb.TASK_PHASE_ENDED]


def test_a_stream_without_fields_gives_empty_tuples() -> None:
    """The number of signals is the number of rows."""
    bench = Bench(Echo)
    bench.put(tuples([(), ()], stream=1))
    bench.run()
    assert bench.output()[1:] == ["signal", "signal"]
    assert bench.task.metrics.executed == {("spout", "b"): 2}


def bad_segments() -> dict[str, tuple[bytes, int]]:
    good = tuples([(0, 1), (0, 2)])
    return {
        "payload": (good[:-4] + b"\xff\xff\xff\xff", 2),
        "rows": (tuples([(0, 1)], rows=9), 9),
        "no rows": (tuples([(0, 1)], rows=0), 0),
        "encoding": (tuples([(0, 1)], encoding=Encoding.ARROW), 1),
        "stream": (tuples([(0, 1)], stream=7), 1),
        "source": (tuples([(0, 1)], source=77), 1),
        "kind": (tuples([(0, 1)], kind=9), 0),
        "unknown option": (tuples([(0, 1)], options=option(999, b"?")), 0),
        "marker": (marker_segment((BOLT,), Marker.PLAN, 3, plan_version=1, source_task=1, incarnation=0), 0),
    }


@pytest.mark.parametrize("name", list(bad_segments()))
def test_an_unreadable_segment_is_counted_and_the_others_are_processed(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """The lost tuples are reported, and the task continues."""
    bad, lost = bad_segments()[name]
    bench = Bench(Echo)
    bench.put(tuples([(0, "before")]), bad, tuples([(0, "after")]))
    bench.run()
    assert bench.output()[1] == "before"
    assert bench.output()[-1] == "after"
    assert bench.task.metrics.failed == lost
    capsys.readouterr()


@pytest.mark.parametrize("garbage", [b"garbage", tuples([(0, 1)])[:-1], tuples([(0, 1)], options=b"\x01\x00\x00")])
def test_a_frame_that_cannot_be_split_loses_only_its_rest(garbage: bytes, capsys: pytest.CaptureFixture[str]) -> None:
    """The next frame is processed."""
    bench = Bench(Echo)
    bench.put(tuples([(0, "before")]), garbage)
    bench.put(tuples([(0, "after")]))
    bench.run()
    assert bench.output()[1:] == ["before", "after"]
    assert bench.task.errors.count == 1
    assert "the rest of the frame is lost" in capsys.readouterr().err


def test_all_received_bytes_are_consumed() -> None:
    """Credit counts all bytes behind the frame's header."""
    bench = Bench(Echo)
    for number in range(5):
        bench.put(tuples([(0, number)]), tuples([(0, number)]))
    bench.run()
    data_in = bench.gateway.data_in
    assert data_in.consumed_bytes == data_in.received_bytes > 0
    assert not Path("/run/c1").exists()  # nothing was opened


def test_the_record_has_capacities_and_delayed_output() -> None:
    """The capacity of each queue has a gauge, and the output limit has a counter if there is a limit."""
    units = {each.name: each.unit for each in Bench(Passing).record()}
    assert units["in-queue-capacity-bytes"] == units["out-queue-capacity-bytes"] == "bytes"
    assert "output-held-s" not in units
    limited = Bench(Passing, {"topology.component.output.bps": 100_000})
    assert {each.name: each.unit for each in limited.record()}["output-held-s"] == "s"


def test_the_limit_of_a_component_is_divided_among_its_tasks() -> None:
    """A new plan may have more tasks. The limit also determines the size of batches."""
    bench = Bench(Passing, {"topology.component.output.bps": 100_000})
    limit, plan = bench.gateway.data_out.limit, bench.task.index.plan
    assert limit is not None
    assert (limit.batch_bytes, bench.task.origin().batch_bytes) == (10_000, 10_000)
    more = (*plan.tasks, TaskPlan(9, "bolt", 1, 1))
    bench.runner.handle(PlanReceived(replace(plan, version=2, tasks=more)))
    assert bench.gateway.data_out.limit is limit
    assert limit.batch_bytes == 5000


def test_acks_do_not_wait_for_output_that_is_blocked() -> None:
    """A limit or back pressure may keep data-out full for minutes, and the trees would expire."""
    bench = Bench(Passing, {"topology.reliability.mode": "ATLEAST_ONCE"})
    key = option(OptionTag.BATCH_KEY, b"12345678") + option(OptionTag.ROOT_BASE, (5).to_bytes(8, "little"))
    bench.run()
    out = bench.gateway.data_out
    bench.put(tuples([(number, number) for number in range(20)], options=key))
    bench.runner.work()
    out.put([b"x" * 100_000])
    assert not out.has_room()
    bench.runner.work()
    acks = [parse_segment(segment, 0) for segments in out.acks for segment in segments]
    assert sum(head.rows for head in acks) == 20


class Slow(Bolt):
    """Takes five milliseconds of the fake clock for each tuple."""

    clock = FakeClock()
    watch: ClassVar[Callable[[], object]] = lambda: None  # replaced by a test
    closed = False

    def initialize(self, config: Any, context: Any) -> None:  # noqa: ANN401  # as authors write it
        self.seen = 0

    def process(self, tup: Tuple) -> None:
        self.clock.advance(0.005)
        type(self).watch()
        self.seen += 1
        self.ack(tup)

    def close(self) -> None:
        self.closed = True


@pytest.fixture
def slow_clock(monkeypatch: pytest.MonkeyPatch) -> FakeClock:
    """The clock that the runner reads, and that `Slow` advances."""
    Slow.clock = FakeClock()
    for module in ("batch_processor", "bolt_output", "bolt_runner"):
        monkeypatch.setattr(f"heron.instance.{module}.monotonic_s", Slow.clock.monotonic_s)
    return Slow.clock


def test_acks_of_a_slow_bolt_leave_within_the_linger_under_steady_input(
    slow_clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Batches shorter than the linger must not delay acks forever, because processed roots would expire."""
    bench = Bench(Slow, {"topology.reliability.mode": "ATLEAST_ONCE"}, EngineSettings(linger_s=0.02))
    key = option(OptionTag.BATCH_KEY, (77).to_bytes(8, "little"))
    for number in range(40):
        base = option(OptionTag.ROOT_BASE, number.to_bytes(8, "little"))
        bench.put(tuples([(0, number)], options=key + base))
    sent: list[int] = []
    monkeypatch.setattr(Slow, "watch", lambda: sent.append(len(bench.gateway.data_out.acks)))
    bench.run()
    assert len(sent) == 40
    assert all(later > earlier for earlier, later in zip(sent, sent[5:], strict=False)), sent


def test_a_stop_waits_only_for_the_running_call(slow_clock: FakeClock) -> None:
    """A frame may hold minutes of slow calls. Its rest is lost like the frames behind it."""
    bench = Bench(Slow)
    bench.put(tuples([(0, number) for number in range(1000)]), tuples([(1, 0)]))
    started_s = slow_clock.monotonic_s()
    bench.runner = BoltRunner(bench.task, After(lambda: slow_clock.monotonic_s() > started_s + 0.5), Slow)
    component = bench.run()
    assert isinstance(component, Slow)
    assert component.closed
    assert 100 <= component.seen < 900
    assert {metric.value for metric in bench.record() if metric.name == "execute-count"} == {component.seen}


class After(Signals):
    """Asks to stop when a condition holds; catches nothing."""

    def __init__(self, condition: Callable[[], bool]) -> None:
        self._condition = condition

    @property
    def stop_requested(self) -> bool:
        return self._condition()


class Swelling(Bolt):
    """Is slow, and emits forty kilobytes for each tuple."""

    def process(self, tup: Tuple) -> None:
        threading.Event().wait(0.003)
        self.emit(["x" * 40_000])


def test_blocked_output_stops_a_batch_between_slices() -> None:
    """Each slice flushes less than a full batch, so only this check stops a batch with too much output."""
    bench = Bench(Swelling, settings=EngineSettings(out_queue_bytes=100_000, batch_bytes=1 << 30, linger_s=0.0))
    data_out = bench.gateway.data_out
    most, over = [0], threading.Event()

    def leave_slowly() -> None:
        while not over.wait(0.02):
            most[0] = max(most[0], data_out.queued_bytes)
            if data_out.items:
                item = data_out.items.popleft()
                if not isinstance(item, Envelope):
                    data_out.sent(item[1])

    leaving = threading.Thread(target=leave_slowly)
    leaving.start()
    bench.put(tuples([(0, number) for number in range(40)]))
    bench.run()
    over.set()
    leaving.join()
    assert bench.task.metrics.executed_total() == 40
    assert most[0] < 100_000 + 8 * 41_000  # the first slice has eight tuples
    uses = {each.labels["use"]: each.value for each in bench.record() if each.name == "task-time-s"}
    assert uses["room"] > 0.1, "most flushes wait for one of the 20 ms rounds"  # type: ignore[operator]  # a counter
