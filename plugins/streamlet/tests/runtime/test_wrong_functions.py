"""Functions that return another type than their operator needs, and clocks that jump."""

from __future__ import annotations

import operator
import re
import threading
from collections.abc import Callable
from typing import Any

import pytest

from heron_streamlet import Builder, Items, Streamlet, session_window, tumbling_window
from heron_testing.fake_clock import FakeClock
from heron_testing.pipelines.collected import Collect
from heron_testing.pipelines.random_chains import Partitions
from heron_testing.pipelines.simulated_runs import run_simulated

MINUTE = tumbling_window(60)
HOUR_S = 3600.0
NOW_S = 1_700_000_000.0

Wrong = Callable[[Streamlet[Any]], Streamlet[Any]]


def no_list(stream: Streamlet[Any]) -> Streamlet[Any]:
    return stream.flat_map(lambda each: each if each == 2 else [each])


def no_key(stream: Streamlet[Any]) -> Streamlet[Any]:
    return stream.key_by(lambda each: [each] if each == 2 else each).count_by_key()


def no_key_of_windows(stream: Streamlet[Any]) -> Streamlet[Any]:
    return stream.event_time(int).key_by(lambda each: [each] if each == 2 else each).count_by_key_and_window(MINUTE)


def not_distinct(stream: Streamlet[Any]) -> Streamlet[Any]:
    return stream.map(lambda each: [each] if each == 2 else each).distinct()


def no_pair(stream: Streamlet[Any]) -> Streamlet[Any]:
    return stream.map(lambda each: each if each == 2 else (each, each)).count_by_key()


def three_values(stream: Streamlet[Any]) -> Streamlet[Any]:
    return stream.map(lambda each: (each,) * (3 if each == 2 else 2)).count_by_key()


def no_pair_for_sessions(stream: Streamlet[Any]) -> Streamlet[Any]:
    timed = stream.event_time(int).map(lambda each: each if each == 2 else (each, each))
    return timed.count_by_key_and_window(session_window(60))


def no_state(stream: Streamlet[Any]) -> Streamlet[Any]:
    pairs = stream.key_by(lambda each: each)
    return pairs.map_with_state(lambda: 0, lambda state, value: value if value == 2 else (state, value))


def no_sum(stream: Streamlet[Any]) -> Streamlet[Any]:
    words = stream.key_by(lambda _: "all", lambda each: "two" if each == 2 else each)
    return words.reduce_by_key(operator.add)


def no_partition(stream: Streamlet[Any]) -> Streamlet[Any]:
    return stream.repartition(2, lambda each, _: "first" if each == 2 else 0)  # type: ignore[arg-type, return-value]  # the mistake


def no_such_partition(stream: Streamlet[Any]) -> Streamlet[Any]:
    return stream.repartition(2, lambda each, _: 10**5_000 if each == 2 else 0)


def no_division(stream: Streamlet[Any]) -> Streamlet[Any]:
    return stream.repartition(2, lambda each, _: 0 // (each - 2))


def cannot_travel(stream: Streamlet[Any]) -> Streamlet[Any]:
    return stream.map(lambda each: threading.Lock() if each == 2 else each).repartition(2)


WRONG: dict[Wrong, str] = {
    no_list: r"operator 'flatmap-1' \(.*\): TypeError: 'int' object is not iterable",
    no_key: r"operator 'keyby-1' \(.*\): EmitError: key value 1 of 1 is of type list, .* use None, bool, int",
    no_key_of_windows: r"operator 'keyby-1' \(.*\): TypeError: unhashable type: 'list'",
    not_distinct: r"operator 'map-1' \(.*\): EmitError: key value 1 of 1 is of type list",
    no_pair: r"operator 'map-1' \(.*\): TypeError: cannot unpack non-iterable int object",
    three_values: r"operator 'map-1' \(.*\): ValueError: too many values to unpack \(expected 2",
    no_pair_for_sessions: r"operator 'map-1' \(.*\): TypeError: cannot unpack non-iterable int object",
    no_state: r"operator 'mapwithstate-1' \(.*\): TypeError: cannot unpack non-iterable int object",
    no_sum: r"operator 'reducebykey-1' \(.*\): TypeError: unsupported operand",
    no_partition: r"operator 'repartition-1' \(.*\): the partition of type str is not an integer from 0 to 1",
    no_such_partition: r"operator 'repartition-1' \(.*\): the partition <int of 16,610 bits> is not an integer from",
    no_division: r"operator 'repartition-1' \(.*\): ZeroDivisionError",
    cannot_travel: r"component 'source-1-to-map-1', .*lock.* cannot be encoded",
}


@pytest.mark.parametrize("wrong", WRONG, ids=lambda wrong: wrong.__name__)
def test_a_function_that_returns_another_type_costs_one_element(wrong: Wrong) -> None:
    """The error names the operator whose result it was, and the others go on."""
    builder = Builder()
    wrong(builder.new_source(Items([1, 2, 3]))).to_sink(Collect("results"))
    run = run_simulated(builder)
    assert len(run["results"]) == 2
    (error,) = run.errors
    assert re.search(WRONG[wrong], error), error


class _Jumping(FakeClock):
    """A wall clock that jumps whenever somebody looks; durations are right."""

    def __init__(self, jumps_s: list[float]) -> None:
        super().__init__(wall_s=NOW_S)
        self._jumps_s = jumps_s
        self._looks = 0

    def monotonic_s(self) -> float:
        self.advance(0.1)
        self._looks += 1
        self.jump_wall(self._jumps_s[self._looks % len(self._jumps_s)])
        return super().monotonic_s()


def test_a_clock_that_jumps_changes_no_window_of_event_time() -> None:
    """Only data moves event time, and pauses of sources are measured by another clock."""
    builder = Builder()
    source = builder.new_source(Partitions([[NOW_S - 100 + 10 * number for number in range(10)]], 1))
    timed = source.event_time(lambda time: time, lag=5, idle_after=60)
    counts = timed.key_by(lambda _: "all").count_by_key_and_window(tumbling_window(20))
    counts.map(lambda pair: pair[1]).to_sink(Collect("counts"))
    counts.late.to_sink(Collect("late"))
    run = run_simulated(builder, clock=_Jumping([HOUR_S, -HOUR_S]))
    assert run.errors == ()
    assert run["counts"] == [2, 2, 2, 2, 2]
    assert run["late"] == []


def test_a_clock_that_is_set_back_refuses_the_present_visibly() -> None:
    """Elements of today are then far in the future; the error gives both times and the limit."""
    builder = Builder()
    timed = builder.new_source(Items([NOW_S, NOW_S + 1])).event_time(lambda time: time, max_ahead=60)
    timed.key_by(lambda _: "all").count_by_key_and_window(MINUTE).to_sink(Collect("counts"))
    clock = FakeClock(wall_s=NOW_S - 2 * HOUR_S)
    run = run_simulated(builder, clock=clock)
    assert run["counts"] == []
    assert "event time 1700000000.000000 s is 7200 s in the future" in run.errors[0]
    assert "the limit is 60 s (max_ahead of event_time)" in run.errors[0]
