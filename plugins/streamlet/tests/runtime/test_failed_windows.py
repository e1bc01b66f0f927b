"""A window has the result of all its elements, or none: a failure for one element fails its window alone."""

from __future__ import annotations

import pickle
import re
from collections.abc import Mapping
from operator import itemgetter
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from heron.api import TopologyContext, ValueState
from heron_streamlet import Builder, Config, Items, session_window, sliding_window, tumbling_window
from heron_streamlet.columns import sum_of
from heron_streamlet.topology.stage_bolts import KeyedStageBolt
from heron_streamlet.views.monoids import Sum
from heron_streamlet.views.view_folds import LiveFold
from heron_streamlet.windowing.failed_window import REPORTED, FailedWindow, WindowFailed
from heron_streamlet.windowing.fold import Aggregated, Reduce
from heron_streamlet.windowing.keyed_operators import CountFold, KeyedOperator, SessionFold, WindowFold
from heron_streamlet.windowing.window import CountWindow, SessionWindow, SlidingWindow
from heron_testing.pipelines.collected import COLLECTED, Collect
from heron_testing.pipelines.fed_runs import Feed, Running
from heron_testing.pipelines.poisoned_windows import KINDS, POISON, POISONED, expected_results, poisoned_windows
from heron_testing.pipelines.simulated_runs import run_simulated


def refusing(one: Any, other: Any) -> Any:  # noqa: ANN401  # tuples of any length
    """The values of both, unless there is poison."""
    if POISON in one + other:
        msg = "poison"
        raise ValueError(msg)
    return one + other


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=12, deadline=None)
@given(inputs=POISONED, tasks=st.integers(1, 2), most=st.sampled_from([1, 3, 1000]), acked=st.booleans())
def test_a_window_with_a_failure_has_no_result_and_the_others_have_all(
    kind: str, inputs: list[list[Any]], tasks: int, most: int, acked: bool
) -> None:
    """Whatever is first, whatever is combined before it travels, and in whichever task a function fails."""
    builder = Builder()
    poisoned_windows(builder, inputs, kind, tasks, most).to_sink(Collect("results"))
    config = Config().set_delivery_semantics(Config.ATLEAST_ONCE if acked else Config.ATMOST_ONCE)
    run = run_simulated(builder, config)
    results, failing = expected_results(inputs, kind)
    assert run["results"] == sorted(results, key=repr)
    if failing >= 0:
        assert run.failed == failing
        assert bool(run.errors) is bool(failing)


@pytest.mark.parametrize("at", [0, 25, 49])
@pytest.mark.parametrize("acked", [False, True], ids=["at most once", "at least once"])
def test_the_error_names_operator_key_window_and_line(at: int, acked: bool) -> None:
    """One error for the window, wherever its poison was; the other key and the other window have their results."""
    builder = Builder()
    events = [(second, key, second) for second in (*range(50), 70) for key in "ab"]
    events[2 * at] = (at, "a", POISON)
    pairs = builder.new_source(Items(events)).event_time(itemgetter(0)).key_by(itemgetter(1), lambda each: (each[2],))
    sums = pairs.reduce_by_key_and_window(tumbling_window(60), refusing)
    sums.map(lambda each: (each[0].key, each[0].window.start_time, len(each[1]))).to_sink(Collect("sums"))
    config = Config().set_delivery_semantics(Config.ATLEAST_ONCE if acked else Config.ATMOST_ONCE)
    run = run_simulated(builder, config)
    assert run["sums"] == [("a", 60.0, 1), ("b", 0.0, 50), ("b", 60.0, 1)]
    assert run.failed == 1
    (error,) = run.errors
    wanted = (
        r"operator 'reducebykeyandwindow-1' \(test_failed_windows.py:\d+\): "
        r"Window\(1970-01-01T00:00:00.000000Z, 60 s\) of a key has no result, because a function failed: "
        r"ValueError: poison; at .*test_failed_windows.py, line \d+"
    )
    assert re.search(wanted, error), error


def test_two_operators_that_fail_at_one_line_are_two_errors() -> None:
    """The first must not hide the second."""
    builder = Builder()
    pairs = builder.new_source(Items([1, POISON])).event_time(lambda _: 1).key_by(lambda _: "a", lambda each: (each,))
    for size in (10, 20):
        pairs.reduce_by_key_and_window(tumbling_window(size), refusing).to_sink(Collect("sums"))
    run = run_simulated(builder)
    assert run.failed == 2
    assert ["reducebykeyandwindow-1" in error for error in sorted(run.errors)] == [True, False]


def test_a_window_that_has_failed_stays_failed() -> None:
    """Elements that come later, and by another task, do not begin it again; it is one error."""
    builder = Builder()
    timed = builder.new_source(Feed("one", "other")).set_num_partitions(2).event_time(itemgetter(0))
    pairs = timed.key_by(lambda _: "all", lambda each: (each[1],))
    pairs.reduce_by_key_and_window(tumbling_window(10), refusing).map(itemgetter(1)).to_sink(Collect("results"))
    running = Running(builder)
    for value in (1, POISON, 3, POISON, 5):
        running.feed("one", (1, value))
        running.after(1.0)
        running.feed("other", (2, 7))
        running.after(1.0)
    running.feed("one", (11, 8))
    running.feed("other", (12, 9))
    running.after(1.0)
    running.feed("one", None)
    running.feed("other", None)
    assert [sorted(each) for each in running.after(10.0)] == [[8, 9]]
    assert len(running.simulation.errors()) == 1


@pytest.mark.parametrize(
    ("operator", "rows"),
    [
        (WindowFold(SlidingWindow(10, 10), Reduce(refusing)), [(0, (1,)), (0, (POISON,)), (0, (2,))]),
        (SessionFold(SessionWindow(5), Reduce(refusing)), [((1,), 0), ((POISON,), 1), ((2,), 3)]),
        (CountFold(CountWindow(4, 4), Reduce(refusing)), [((1,), 0, 0), ((POISON,), 0, 0), ((2,), 0, 0)]),
    ],
    ids=lambda each: type(each).__name__,
)
def test_a_state_with_a_failed_window_survives_a_checkpoint(operator: KeyedOperator, rows: list[Any]) -> None:
    """It is pickled with the state; the operator that reads it calls no author's function with it."""
    state = operator.add("key", None, rows[0], lambda *_: None)
    with pytest.raises(WindowFailed) as failed:
        operator.add("key", state, rows[1], lambda *_: None)
    restored = pickle.loads(pickle.dumps(failed.value.state))
    assert operator.has_failed(restored)
    after = operator.guarded().add("key", restored, rows[2], lambda *_: None)
    assert operator.has_failed(after)
    assert pickle.loads(pickle.dumps(REPORTED)) == FailedWindow()


def newest(one: object, other: int) -> int:
    """The second of two values, whatever the first is; unless it is poison."""
    if other == POISON:
        msg = "poison"
        raise ValueError(msg)
    del one
    return other


@pytest.mark.parametrize("window", [tumbling_window(10), sliding_window(10, 5), session_window(5)], ids=str)
@pytest.mark.parametrize("early", [False, True])
def test_a_function_that_ignores_its_arguments_revives_no_failed_window(
    window: SlidingWindow | SessionWindow, early: bool
) -> None:
    """It gets no failed window: it would give a result of what came after the failure."""
    builder = Builder()
    pairs = builder.new_source(Feed("a")).event_time(itemgetter(0)).key_by(lambda _: "a", itemgetter(1))
    newest_of = pairs.reduce_by_key_and_window(window, newest)
    newest_of.map(itemgetter(1)).to_sink(Collect("results"))
    if early:
        newest_of.early(1).map(lambda each: each.result).to_sink(Collect("early"))
    running = Running(builder)
    for value in (1, POISON, 2, 3):
        running.feed("a", (6, value))
        running.after(2.0)
    assert not COLLECTED.get("early")
    running.feed("a", None)
    assert running.after(10.0) == []
    assert "poison" in running.simulation.errors()[0]


@pytest.mark.parametrize(
    ("window", "state"),
    [
        (tumbling_window(10), {0: REPORTED}),
        (sliding_window(10, 5), {-5_000_000: REPORTED, 0: REPORTED}),
        (session_window(5), [(0, 6_000_000, REPORTED)]),
    ],
    ids=["tumbling", "sliding", "session"],
)
def test_a_task_that_restores_failed_windows_expects_them(
    monkeypatch: pytest.MonkeyPatch, window: SlidingWindow | SessionWindow, state: object
) -> None:
    """After a death or an update, another process has the state; it reports no window again."""
    start = KeyedStageBolt.start

    def restored(self: KeyedStageBolt, config: Mapping[str, Any], context: TopologyContext) -> None:
        context.keyed_state(self.host.stage.head.name, ValueState).put("a", state)
        start(self, config, context)

    monkeypatch.setattr(KeyedStageBolt, "start", restored)
    builder = Builder()
    pairs = builder.new_source(Items([(2, 1), (3, 2), (22, 3)])).event_time(itemgetter(0), lag=100)
    sums = pairs.key_by(lambda _: "a", itemgetter(1)).reduce_by_key_and_window(window, newest)
    sums.map(itemgetter(1)).to_sink(Collect("results"))
    run = run_simulated(builder)
    assert set(run["results"]) == {3}
    assert (run.failed, run.errors) == (0, ())


@pytest.mark.parametrize("acked", [False, True], ids=["at most once", "at least once"])
def test_rows_that_arrow_cannot_add_fail_their_windows(acked: bool) -> None:
    """Columns: a batch of another type fails the windows of its rows, and no others."""
    batches = [
        {"time": [1, 2, 12], "key": ["a", "b", "a"], "value": [1, 2, 3]},
        {"time": [3, 13], "key": ["a", "b"], "value": ["x", "y"]},
        {"time": [4], "key": ["b"], "other": [1]},
    ]
    builder = Builder()
    timed = builder.new_columns(Items([pa.table(each) for each in batches])).event_time("time", lag=100)
    sums = timed.aggregate_by_key_and_window("key", tumbling_window(10), total=sum_of("value"))
    sums.map(lambda each: (each[0].key, each[0].window.start_time, each[1]["total"])).to_sink(Collect("sums"))
    config = Config().set_delivery_semantics(Config.ATLEAST_ONCE if acked else Config.ATMOST_ONCE)
    run = run_simulated(builder, config)
    assert run["sums"] == [("a", 10.0, 3)]
    assert run.failed == 3
    assert all("operator 'aggregatebykeyandwindow-1'" in error for error in run.errors)
    assert run.errors


def test_windows_by_the_clock_fail_alone() -> None:
    """Also where the aggregate refuses the value itself, before anything is merged."""
    builder = Builder()
    pairs = builder.new_source(Feed("a")).key_by(itemgetter(0), lambda each: (each[1],))
    KINDS["add"](pairs, refusing, True).map(lambda each: (each[0].key, each[1])).to_sink(Collect("results"))
    running = Running(builder)
    running.feed("a", ("x", 1), ("x", POISON), ("y", 2))
    running.after(1.0)
    running.feed("a", ("x", 3), ("y", 4))
    assert running.after(20.0) == [("y", (2, 4))]
    (error,) = running.simulation.errors()
    assert "of a key has no result, because a function failed: ValueError: poison" in error


def test_results_behind_a_window_fail_alone() -> None:
    """A function behind a join costs one pair; the other pairs of the window are not lost."""
    builder = Builder()
    pairs = builder.new_source(Items([1, 2, 3])).event_time(lambda _: 1).key_by(lambda _: "all")
    joined = pairs.join(pairs, tumbling_window(10), lambda one, other: (one, other)).map(itemgetter(1))
    joined.map(lambda pair: pair[0] // (pair[1] - 2)).to_sink(Collect("results"))
    run = run_simulated(builder)
    assert run["results"] == [-1, -2, -3, 1, 2, 3]
    assert run.failed == 3


def test_a_span_of_a_view_that_has_failed_gives_nothing_more() -> None:
    """A sink must not write a failed window; other spans of the key go on."""
    given: list[Any] = []

    def results(element: object, *_: int) -> None:
        given.append(element)

    fold = LiveFold(tumbling_window(10), Aggregated(Sum()))
    state = fold.add("a", None, (0, 1), results)
    with pytest.raises(WindowFailed) as failed:
        fold.add("a", state, (0, "x"), results)
    state = fold.guarded().add("a", failed.value.state, (0, 2), results)
    fold.guarded().add("a", state, (10_000_000, 3), results)
    assert given == [((0, "a"), 1), ((10_000_000, "a"), 3)]
