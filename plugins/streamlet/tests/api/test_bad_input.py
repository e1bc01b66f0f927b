"""What authors get wrong: each mistake is one error that names the operator, before anything starts."""

from __future__ import annotations

import math
import operator
import re
import threading
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from heron.errors import ConfigError, HeronError, TopologyError, UsageError
from heron_streamlet import (
    Builder,
    Config,
    Items,
    Runner,
    Streamlet,
    TextFiles,
    WindowedStreamlet,
    count_window,
    session_window,
    sliding_window,
    tumbling_window,
)
from heron_streamlet.topology.topology_compiler import compile_topology
from heron_testing.pipelines.collected import Collect
from heron_testing.pipelines.simulated_runs import run_simulated


def compiled(wrong: Callable[[Builder], None]) -> None:
    builder = Builder()
    wrong(builder)
    compile_topology("pipeline", builder.graph(), {})


def events(times: list[Any], lag: float = 0) -> Builder:
    """Counts elements per minute; the elements are their event times."""
    builder = Builder()
    timed = builder.new_source(Items(times)).event_time(lambda time: time, lag=lag)
    counts = timed.key_by(lambda _: "all").count_by_key_and_window(tumbling_window(60))
    counts.map(lambda pair: pair[1]).to_sink(Collect("counts"))
    counts.late.map(lambda pair: pair[1]).to_sink(Collect("late"))
    return builder


def counted() -> WindowedStreamlet[Any, int, Any]:
    return timed_pairs(Builder()).count_by_key_and_window(tumbling_window(60))


def no_source(builder: Builder) -> None:
    del builder


def same_name(builder: Builder) -> None:
    builder.new_source(Items([1])).set_name("one").map(str).set_name("one").log()


def unread(builder: Builder) -> None:
    builder.new_source(Items([1]))


def unread_result(builder: Builder) -> None:
    builder.new_source(Items([1])).map(str)


def half_timed(builder: Builder) -> None:
    one, other = builder.new_source(Items([(1, 1)])), builder.new_source(Items([(1, 1)]))
    one.event_time(operator.itemgetter(0)).join(other, tumbling_window(1), operator.add).log()


def time_after_shuffle(builder: Builder) -> None:
    builder.new_source(Items([1])).repartition(2).event_time(int).log()


def time_in_other_tasks(builder: Builder) -> None:
    builder.new_source(Items([1])).map(int).set_num_partitions(2).event_time(int).log()


def time_twice(builder: Builder) -> None:
    builder.new_source(Items([1])).event_time(int).event_time(int).log()


def a_lock(builder: Builder) -> None:
    lock = threading.Lock()
    builder.new_source(Items([1])).map(lambda each: (lock, each)).log()


def two_builders(builder: Builder) -> None:
    builder.new_source(Items([1])).union(Builder().new_source(Items([1]))).log()


def count_of_whole(builder: Builder) -> None:
    builder.new_source(Items([1])).reduce_by_window(count_window(2), max)  # type: ignore[arg-type]  # the mistake


def sessions_joined(builder: Builder) -> None:
    pairs = builder.new_source(Items([(1, 1)]))
    pairs.join(pairs, session_window(1), operator.add)  # type: ignore[arg-type]  # the mistake


def windows_joined(builder: Builder) -> None:
    pairs = builder.new_source(Items([(1, 1)])).event_time(operator.itemgetter(0))
    few = pairs.count_by_key_and_window(tumbling_window(10)).set_name("tens").filter(bool)
    minutes = pairs.count_by_key_and_window(tumbling_window(60)).key_by(lambda pair: pair[0].key)
    minutes.map_values(lambda pair: pair[1]).join(few, tumbling_window(60), operator.add).log()  # type: ignore[arg-type]


def windows_counted(builder: Builder) -> None:
    pairs = builder.new_source(Items([(1, 1)])).event_time(operator.itemgetter(0))
    pairs.count_by_key_and_window(session_window(5)).clone(1)[0].count_by_key().log()


def timed_pairs(builder: Builder) -> Streamlet[tuple[int, int]]:
    return builder.new_source(Items([(1, 1)])).event_time(operator.itemgetter(0))


def early_of_a_join(builder: Builder) -> None:
    pairs = timed_pairs(builder)
    pairs.join(pairs, tumbling_window(10), operator.add).early(1).log()


def early_too_often(builder: Builder) -> None:
    timed_pairs(builder).count_by_key_and_window(tumbling_window(10)).early(0.001).log()


def early_too_rarely(builder: Builder) -> None:
    timed_pairs(builder).count_by_key_and_window(tumbling_window(10).allow_lateness(2)).early(12.5).log()


def early_in_other_tasks(builder: Builder) -> None:
    counts = timed_pairs(builder).count_by_key_and_window(tumbling_window(10)).set_num_partitions(2)
    counts.early(1).set_num_partitions(3).log()


WRONG: dict[Callable[[Builder], None], str] = {
    no_source: "the pipeline has no source",
    same_name: r"two operators have the name 'one', at test_bad_input.py:\d+ and test_bad_input.py:\d+",
    unread: r"'source-1' \(test_bad_input.py:\d+\): nothing reads this stream",
    unread_result: r"'map-1' \(test_bad_input.py:\d+\): nothing reads its results",
    half_timed: "the input 'eventtime-1' has event time and 'source-2' has not",
    time_after_shuffle: "event_time after 'repartition-1' cannot know the order of the source",
    time_in_other_tasks: "event_time after 'map-1 with 2 partitions' cannot know the order",
    time_twice: r"'eventtime-2' \(.*\): the stream has event time already, of 'eventtime-1'",
    a_lock: r"operator 'map-1' \(.*\): what it uses cannot be sent to its tasks: .*lock",
    two_builders: "union: the streams belong to two builders",
    count_of_whole: "reducebywindow: CountWindow.* is not a window for it",
    early_of_a_join: r"'early-1' \(test_bad_input.py:\d+\): 'join-1' \(.*\) gives no early results: a join has pairs",
    early_too_often: r"'early-1' \(.*:\d+\): early results every 0.001 s; the shortest time is 0.01 s",
    early_too_rarely: r"every 12.5 s: the windows of 'countbykeyandwindow-1' are open for 12 s, so most",
    early_in_other_tasks: r"'early-1' \(.*:\d+\): early results come from the 2 tasks of .*, and not from 3",
    sessions_joined: "join: SessionWindow.* is not a window for it",
    windows_joined: r"'join-1' \(test_bad_input.py:\d+\): .* are the windows of 'tens' .* call key_by",
    windows_counted: "'countbykey-1' .* are the windows of 'countbykeyandwindow-1' .* cannot be keys",
}


@pytest.mark.parametrize("wrong", WRONG, ids=lambda wrong: wrong.__name__)
def test_a_wrong_pipeline_is_refused(wrong: Callable[[Builder], None]) -> None:
    """The message names what is wrong, and where."""
    with pytest.raises(TopologyError, match=WRONG[wrong]):
        compiled(wrong)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: tumbling_window(0), "window size 0 is not from 1 µs"),
        (lambda: tumbling_window(math.nan), "window size nan is not a timedelta or a number of seconds"),
        (lambda: sliding_window(timedelta(minutes=1), "5"), "window slide '5' is not a timedelta"),  # type: ignore[arg-type]
        (lambda: session_window(timedelta(days=-1)), "session gap .* is not from 1 µs"),
        (lambda: session_window(math.inf), "session gap inf is not from 1 µs"),
        (lambda: count_window(0), "count window: size 0 is not an integer of at least 1"),
        (lambda: count_window(2, 1.5), "count window: slide 1.5 is not"),  # type: ignore[arg-type]
        (lambda: tumbling_window(1).allow_lateness(-1), "allow_lateness -1 is not from 0 µs"),
        (lambda: counted().early(0), "early: every 0 is not from 1 µs"),
        (lambda: counted().early(-1), "early: every -1 is not from 1 µs"),
        (lambda: counted().early("1 s"), "early: every '1 s' is not a timedelta or a number of seconds"),  # type: ignore[arg-type]
        (lambda: counted().early(True), "early: every True is not a timedelta or a number of seconds"),
        (lambda: Items(iter([1])), "an iterator can be read only once"),
        (lambda: TextFiles("/nowhere/*.txt").partitions(1), "TextFiles.'/nowhere/.*: no file matches"),
        (lambda: Builder().new_source([1]), "a list is Items"),  # type: ignore[arg-type]
        (lambda: Builder().new_source(Items([1])).map(3), "map: 3 cannot be called"),  # type: ignore[arg-type]
        (lambda: Builder().new_source(Items([1])).set_num_partitions(0), "0 partitions: not an integer"),
        (lambda: Builder().new_source(Items([1])).set_name("a/b"), "name 'a/b' is not a text"),
        (lambda: Builder().new_source(Items([1])).clone(0), "0 clones: not an integer"),
        (lambda: Builder().new_source(Items([1])).to_sink(print), "to_sink.*: not a Sink; for a function use consume"),  # type: ignore[arg-type]
        (lambda: Builder().new_source(Items([1])).transform(str), "transform.*: not a Transformer"),  # type: ignore[arg-type]
        (lambda: Config().set_delivery_semantics(4), "delivery semantics 4: give Config.ATMOST_ONCE"),
    ],
)
def test_a_wrong_argument_is_refused(call: Callable[[], object], message: str) -> None:
    """At the author's line."""
    with pytest.raises((UsageError, TopologyError, ConfigError), match=message):
        call()


def test_streams_with_different_windows_are_joined_by_their_keys() -> None:
    """A join has one window, for both streams; the windows before it decide which of their results are in it."""
    builder = Builder()
    pairs = builder.new_source(Items([(1, 1), (12, 1)])).event_time(operator.itemgetter(0)).key_by(lambda _: "all")
    minutes = pairs.count_by_key_and_window(tumbling_window(60)).key_by(lambda pair: pair[0].key, lambda pair: pair[1])
    tens = pairs.count_by_key_and_window(tumbling_window(10)).key_by(lambda pair: pair[0].key, lambda pair: pair[1])
    minutes.join(tens, tumbling_window(60), operator.add).map(lambda pair: pair[1]).to_sink(Collect("sums"))
    assert run_simulated(builder)["sums"] == [3, 3]


def test_python_alone_cannot_run_a_pipeline() -> None:
    """Nothing would happen; the message says how."""
    builder = Builder()
    builder.new_source(Items([1])).log()
    with pytest.raises(HeronError, match="run this file with `heron run FILE`"):
        Runner().run("pipeline", Config(), builder)


def test_a_failing_function_names_its_operator_and_the_others_go_on() -> None:
    """Without this, a fused chain would hide where it failed."""
    builder = Builder()
    source = builder.new_source(Items(["1", "x", "3"])).map(int).set_name("parse")
    source.map(lambda number: 6 // (number - 3)).to_sink(Collect("numbers"))
    run = run_simulated(builder)
    assert run["numbers"] == [-3]
    parse, divide = run.errors
    assert "operator 'parse' (test_bad_input.py:" in parse
    assert "ValueError: invalid literal for int() with base 10: 'x'" in parse
    assert "operator 'map-1' (test_bad_input.py:" in divide
    assert "ZeroDivisionError" in divide
    assert "test_bad_input.py, line" in divide


@pytest.mark.parametrize("stage", ["elements", "running", "windows"])
def test_at_least_once_an_element_that_fails_is_not_sent_again(stage: str) -> None:
    """It would fail each time, and the pipeline would never end. A window that it fails has no result."""
    builder = Builder()
    source = builder.new_source(Items([1, 2, 3, 2])).event_time(lambda _: 1).repartition(1)
    pairs = source.key_by(lambda number: number % 2)
    if stage == "elements":
        results: Any = source.map(lambda number: 6 // (number - 2))
    elif stage == "running":
        results = pairs.reduce_by_key(lambda one, other: 6 // (other - 2)).map(lambda pair: pair[1])
    else:
        window = tumbling_window(10)
        results = pairs.reduce_by_key_and_window(window, lambda one, other: 6 // (other - 2)).map(lambda pair: pair[1])
    results.to_sink(Collect("numbers"))
    run = run_simulated(builder, Config().set_delivery_semantics(Config.ATLEAST_ONCE))
    assert run["numbers"] == {"elements": [-6, 6], "running": [1, 2, 6], "windows": [6]}[stage]
    (error,) = run.errors
    assert "ZeroDivisionError" in error


@pytest.mark.parametrize(
    ("time", "message"),
    [
        (None, "event time of type NoneType is neither a datetime with a time zone nor seconds"),
        (datetime(2026, 1, 1), "has no time zone"),  # noqa: DTZ001  # the mistake
        ("today", "event time of type str is neither"),
        (math.nan, "event time nan is neither"),
        (1.7e12, "are these milliseconds instead of seconds"),
        (datetime(2255, 6, 5, 23, 47, 34, 740992, tzinfo=UTC), "is beyond the years 1684 and 2255"),
        (datetime(1684, 7, 28, 0, 12, 25, 259008, tzinfo=UTC), "is beyond the years 1684 and 2255"),
        (
            datetime(2250, 1, 1, tzinfo=UTC),
            "s in the future, and would make all other elements late; the limit is 86400 s",
        ),
    ],
)
def test_a_wrong_event_time_fails_its_element(time: object, message: str) -> None:
    """The other elements are counted."""
    run = run_simulated(events([10, time, 20]))
    assert run["counts"] == [2]
    (error,) = run.errors
    assert "operator 'eventtime-1'" in error
    assert re.search(message, error)


def test_an_old_event_time_is_late_and_visible() -> None:
    """1970 is what a missing time often becomes."""
    run = run_simulated(events([1_700_000_000, 0, 1_700_000_001], lag=5))
    assert run["counts"] == [2]
    assert run["late"] == [0]


def test_a_window_smaller_than_the_lag_closes_later() -> None:
    """It is allowed: windows wait for the lag."""
    builder = Builder()
    pairs = builder.new_source(Items([(1, "a"), (5, "a"), (2, "a")])).event_time(operator.itemgetter(0), lag=10)
    pairs.key_by(operator.itemgetter(1)).count_by_key_and_window(tumbling_window(1)).to_sink(Collect("counts"))
    assert [count for _, count in run_simulated(builder)["counts"]] == [1, 1, 1]


def test_the_first_and_the_last_event_time_are_exact() -> None:
    """The documented limits: all microseconds between them are exact, also as seconds."""
    first = datetime(1684, 7, 28, 0, 12, 25, 259009, tzinfo=UTC)
    last = datetime(2255, 6, 5, 23, 47, 34, 740991, tzinfo=UTC)
    builder = Builder()
    timed = builder.new_source(Items([first, last])).event_time(lambda time: time, max_ahead=None)
    windows = timed.key_by(lambda _: "all").count_by_key_and_window(tumbling_window(1e-6))
    windows.map(lambda pair: pair[0].window.start).to_sink(Collect("starts"))
    assert run_simulated(builder)["starts"] == [first, last]


def test_sessions_are_half_open() -> None:
    """The end of a window is not part of it: an element exactly one gap later begins another session."""
    builder = Builder()
    timed = builder.new_source(Items([0, 5.1, 10.2, 15.299999])).event_time(lambda time: time)
    counts = timed.key_by(lambda _: "all").count_by_key_and_window(session_window(5.1))
    counts.map(lambda pair: (pair[0].window.start_us, pair[0].window.end_us, pair[1])).to_sink(Collect("sessions"))
    assert run_simulated(builder)["sessions"] == [
        (0, 5_100_000, 1),
        (10_200_000, 20_399_999, 2),
        (5_100_000, 10_200_000, 1),
    ]


def test_an_element_is_late_for_a_session_of_its_own() -> None:
    """Not for the session that it would join: lateness does not depend on other elements."""
    builder = Builder()
    timed = builder.new_source(Items([0, 4, 8, 12, 2.5, 2])).event_time(lambda time: time, lag=5)
    counts = timed.key_by(lambda _: "all").count_by_key_and_window(session_window(5))
    counts.map(lambda pair: pair[1]).to_sink(Collect("sessions"))
    counts.late.map(lambda pair: pair[1]).to_sink(Collect("late"))
    run = run_simulated(builder)
    assert run["sessions"] == [5]
    assert run["late"] == [2]


class Word(str):
    """Compares and hashes as str does."""

    __slots__ = ()


@pytest.mark.parametrize("windowed", [False, True])
def test_a_key_of_a_subclass_is_the_key_that_it_equals(windowed: bool) -> None:
    """Whether an equal key was there before makes no difference, nor does the engine."""
    builder = Builder()
    words = [Word("b"), "a", Word("a"), "b", ("a", Word("c")), ("a", "c")]
    pairs = builder.new_source(Items(words)).event_time(lambda _: 1).key_by(lambda word: word)
    counts: Any = pairs.count_by_key_and_window(tumbling_window(10)) if windowed else pairs.count_by_key()
    counts.map(lambda pair: pair[1]).to_sink(Collect("counts"))
    run = run_simulated(builder)
    assert run.errors == ()
    assert run["counts"] == ([2, 2, 2] if windowed else [1, 1, 1, 2, 2, 2])
