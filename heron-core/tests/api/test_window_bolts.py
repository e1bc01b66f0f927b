"""Window bolts with a clock that the test sets."""

from __future__ import annotations

from typing import Any, TypeAlias

import pytest

from heron.api import (
    BoltCollector,
    GlobalStreamId,
    HashMapState,
    SlidingWindowBolt,
    TopologyContext,
    TumblingWindowBolt,
    Tuple,
    TupleHelper,
    WindowContext,
)
from heron.errors import HeronError

Calls: TypeAlias = list[tuple[object, ...]]

EPOCH_S = 1_000_000.0
SOURCE = Tuple.source("word", "default", 1)


class HandClock:
    """Its time changes only when the test sets it."""

    def __init__(self) -> None:
        self.now_s = 50.0

    def monotonic_s(self) -> float:
        return self.now_s

    def wall_s(self) -> float:
        return EPOCH_S + self.now_s - 50.0


class Sliding(SlidingWindowBolt):
    windows: list[tuple[WindowContext, list[object]]]

    def processWindow(self, window_info: WindowContext, tuples: list[Tuple]) -> None:
        self.windows.append((window_info, [tup.values[0] for tup in tuples]))


class Tumbling(TumblingWindowBolt):
    windows: list[tuple[WindowContext, list[object]]]

    def processWindow(self, window_info: WindowContext, tuples: list[Tuple]) -> None:
        self.windows.append((window_info, [tup.values[0] for tup in tuples]))


class Bench:
    """A window bolt with its clock: `at` delivers a tuple, `tick` ends a slide."""

    def __init__(
        self, bolt: Sliding | Tumbling, calls: Calls, config: dict[str, Any], context: TopologyContext
    ) -> None:
        self.clock = HandClock()
        self.calls = calls
        self.bolt = bolt
        bolt.clock = self.clock
        bolt.windows = []
        bolt.initialize(config, context)

    def at(self, second: float, value: object) -> None:
        self.clock.now_s = 50.0 + second
        self.bolt.process(SOURCE(values=(value,)))

    def tick(self, second: float) -> list[object]:
        self.clock.now_s = 50.0 + second
        self.bolt.process_tick(TupleHelper.make_tick_tuple())
        return self.bolt.windows[-1][1]

    @property
    def acked(self) -> list[object]:
        return [tup.values[0] for name, tup in self.calls if name == "ack" and isinstance(tup, Tuple)]


def sliding(
    collector: BoltCollector, calls: Calls, context: TopologyContext, duration: float, slide: float | None = None
) -> Bench:
    config: dict[str, Any] = {Sliding.WINDOW_DURATION_SECS: duration}
    if slide is not None:
        config[Sliding.WINDOW_SLIDEINTERVAL_SECS] = slide
    return Bench(Sliding(collector), calls, config, context)


def test_a_tuple_is_in_each_window_that_covers_it_and_acked_with_the_last(
    bolt_collector: BoltCollector, calls: Calls, context: TopologyContext
) -> None:
    """Duration 10 and slide 5 put each tuple into exactly two windows."""
    bench = sliding(bolt_collector, calls, context, 10, 5)
    bench.at(1, "a")
    assert bench.tick(5) == ["a"]
    bench.at(6, "b")
    assert bench.tick(10) == ["a", "b"]
    assert bench.acked == ["a"]
    assert bench.tick(15) == ["b"]
    assert bench.acked == ["a", "b"]
    assert bench.tick(20) == []


def test_a_window_has_its_span_in_seconds_since_the_epoch(
    bolt_collector: BoltCollector, calls: Calls, context: TopologyContext
) -> None:
    """Authors put the span into results."""
    bench = sliding(bolt_collector, calls, context, 10, 5)
    bench.tick(5)
    assert bench.bolt.windows == [(WindowContext(EPOCH_S - 5, EPOCH_S + 5), [])]


def test_late_ticks_neither_lose_nor_repeat_a_tuple(
    bolt_collector: BoltCollector, calls: Calls, context: TopologyContext
) -> None:
    """By clock readings, a late tick would drop a tuple that came just after a tick."""
    bench = sliding(bolt_collector, calls, context, 3)  # no slide: windows do not overlap
    bench.at(0.0001, "a")
    assert bench.tick(3.2) == ["a"]
    bench.at(3.2, "b")
    bench.at(6.15, "c")
    bench.at(6.3, "late")
    assert bench.tick(6.4) == ["b", "c", "late"]
    assert bench.tick(9.2) == []
    assert bench.acked == ["a", "b", "c", "late"]


def test_a_duration_may_be_any_multiple_of_the_slide(
    bolt_collector: BoltCollector, calls: Calls, context: TopologyContext
) -> None:
    """Duration 5, slide 2: second 0.5 is in the windows that end at 2 and 4, second 1.5 also at 6."""
    bench = sliding(bolt_collector, calls, context, 5, 2)
    bench.at(0.5, "early")
    bench.at(1.5, "later")
    assert [bench.tick(second) for second in (2, 4, 6, 8)] == [["early", "later"]] * 2 + [["later"], []]


def test_rounding_errors_do_not_change_the_number_of_windows(
    bolt_collector: BoltCollector, calls: Calls, context: TopologyContext
) -> None:
    """0.3 / 0.1 is 2.9999999999999996, which would drop a tuple from its third window."""
    bench = sliding(bolt_collector, calls, context, 0.3, 0.1)
    bench.at(0, "a")
    assert [bench.tick(second) for second in (0.1, 0.2, 0.3, 0.4)] == [["a"], ["a"], ["a"], []]


def test_tumbling_windows_hold_and_ack_every_tuple(
    bolt_collector: BoltCollector, calls: Calls, context: TopologyContext
) -> None:
    """Each tuple is in exactly one window."""
    bench = Bench(Tumbling(bolt_collector), calls, {Tumbling.WINDOW_DURATION_SECS: "2"}, context)
    bench.at(0, "a")
    bench.at(1.9, "b")
    assert bench.tick(2) == ["a", "b"]
    assert bench.acked == ["a", "b"]
    assert bench.tick(4) == []


def test_finish_processes_the_last_window(
    bolt_collector: BoltCollector, calls: Calls, context: TopologyContext
) -> None:
    """Tuples after the last tick would otherwise be in no window."""
    bench = sliding(bolt_collector, calls, context, 10, 5)
    bench.at(1, "a")
    bench.tick(5)
    bench.at(6, "b")
    bench.bolt.finish()
    assert [tuples for _, tuples in bench.bolt.windows] == [["a"], ["a", "b"]]
    assert bench.acked == ["a", "b"]


def test_finish_processes_no_window_without_new_tuples(
    bolt_collector: BoltCollector, calls: Calls, context: TopologyContext
) -> None:
    """Another window of old tuples would count them once too often."""
    bench = sliding(bolt_collector, calls, context, 10, 5)
    bench.at(1, "a")
    bench.tick(5)
    bench.bolt.finish()
    assert len(bench.bolt.windows) == 1
    assert bench.acked == ["a"]


def test_saved_tuples_are_restored(bolt_collector: BoltCollector, calls: Calls, context: TopologyContext) -> None:
    """The bolt receives the saved state before initialize."""
    state = HashMapState()
    first = Sliding(bolt_collector)
    first.init_state(state)
    bench = Bench(first, calls, {Sliding.WINDOW_DURATION_SECS: 4}, context)
    bench.at(1, "a")
    first.pre_save("checkpoint-1")

    second = Sliding(bolt_collector)
    second.init_state(state)
    assert Bench(second, calls, {Sliding.WINDOW_DURATION_SECS: 4}, context).tick(4) == ["a"]


def test_the_spec_sets_the_tick_period() -> None:
    """The engine reads the period from the configuration; heronpy changed it in initialize."""
    inputs = [GlobalStreamId("word", "default")]
    config = {Sliding.WINDOW_DURATION_SECS: 10, Sliding.WINDOW_SLIDEINTERVAL_SECS: "2"}
    definition = Sliding.spec(name="window", inputs=inputs, config=config).definition()
    assert definition.config == {**config, "topology.tick.tuple.freq.secs": 2.0}
    assert Tumbling.spec(name="w", inputs=inputs, config={Tumbling.WINDOW_DURATION_SECS: 3}).definition().config[
        "topology.tick.tuple.freq.secs"
    ] == pytest.approx(3)


@pytest.mark.parametrize(
    ("config", "message"),
    [
        (
            None,
            r"'window': the duration of the window is missing; give config=\{'slidingwindowbolt_duration_secs'",
        ),
        ({Sliding.WINDOW_DURATION_SECS: 0}, "slidingwindowbolt_duration_secs is 0; give a number of seconds above 0"),
        ({Sliding.WINDOW_DURATION_SECS: "long"}, "is 'long'; give a number"),
        ({Sliding.WINDOW_DURATION_SECS: None}, "is None; give a number"),
        ({Sliding.WINDOW_DURATION_SECS: 2, Sliding.WINDOW_SLIDEINTERVAL_SECS: 3}, "is 3 s, above the duration 2 s"),
        ({Sliding.WINDOW_DURATION_SECS: 2, "topology.tick.tuple.freq.secs": 1}, "but this window ticks every 2 s"),
    ],
)
def test_impossible_window_times_are_refused_by_spec(config: dict[str, object] | None, message: str) -> None:
    """heronpy only logged them, and failed later in the instance."""
    with pytest.raises(HeronError, match=message):
        Sliding.spec(name="window", config=config)
