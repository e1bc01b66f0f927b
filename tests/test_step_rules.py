"""What becomes of a record that fails in a step: each rule, kind of step and engine, with the same counts."""

from __future__ import annotations

import tempfile
import uuid
from ast import literal_eval
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from heron.api import DeadLetter
from heron.errors import TopologyFailedError, UserCodeError
from heron_streamlet import (
    Aggregate,
    Builder,
    Config,
    Items,
    KeyedWindow,
    Sink,
    Streamlet,
    TextFiles,
    Transformer,
    count_window,
    session_window,
    tumbling_window,
)
from heron_streamlet.columns import ColumnStreamlet
from heron_testing.pipelines.collected import Collect
from heron_testing.pipelines.level_runs import LevelRun, plan_of
from heron_testing.pipelines.simulated_runs import run_simulated

TEN = tumbling_window(10)


def checked(number: int) -> int:
    """Fails for two."""
    if number == 2:
        msg = "no two"
        raise ValueError(msg)
    return number


def total(one: int, other: int) -> int:
    return checked(one) + checked(other)


class Checking(Transformer[int, int]):
    """`checked` as an object."""

    def transform(self, element: int) -> list[int]:
        return [checked(element)]


class Totals(Aggregate[int, int, int]):
    """`total` as an object."""

    def zero(self) -> int:
        return 0

    def add(self, accumulator: int, value: int) -> int:
        return accumulator + checked(value)

    def merge(self, left: int, right: int) -> int:
        return left + right


class Refusing(Sink[int]):
    """`checked` as a sink."""

    def put(self, element: int) -> None:
        checked(element)


def parity(number: int) -> str:
    return "even" if number % 2 == 0 else "odd"


def pairs(numbers: Streamlet[int]) -> Streamlet[Any]:
    return numbers.key_by(parity)


def timed(numbers: Streamlet[int]) -> Streamlet[Any]:
    return pairs(numbers.event_time(lambda number: number % 10))


def joined(numbers: Streamlet[int]) -> Streamlet[Any]:
    own = timed(numbers)
    return own.join(own, TEN, total)


def columns(numbers: Streamlet[int]) -> ColumnStreamlet:
    return numbers.map(lambda number: {"x": number}).to_columns({"x": pa.int64()}, rows=1)


def failing_columns(batch: pa.RecordBatch) -> pa.Array:
    return pc.greater(checked_columns(batch)["x"], 0)


def checked_columns(batch: pa.RecordBatch) -> pa.RecordBatch:
    """`checked` of the only row."""
    checked(batch["x"][0].as_py())
    return batch


Step = Callable[[Streamlet[int]], Any]

STEPS: dict[str, tuple[Step, Sequence[str], list[object] | None]] = {
    # the results without what failed, and the values of the dead letter
    "map": (lambda n: n.map(checked), ["1", "3"], [2]),
    "flat_map": (lambda n: n.flat_map(lambda each: [checked(each)]), ["1", "3"], [2]),
    "filter": (lambda n: n.filter(checked), ["1", "3"], [2]),
    "transform": (lambda n: n.transform(Checking()), ["1", "3"], [2]),
    "key_by": (lambda n: n.key_by(checked), ["(1, 1)", "(3, 3)"], [2]),
    "a-value-of-key_by": (lambda n: n.key_by(parity, checked), ["('odd', 1)", "('odd', 3)"], [2]),
    "key_by-of-pairs": (
        lambda n: pairs(n).key_by(lambda p: p[0]).map(lambda p: checked(p[1][1])),
        ["1", "3"],
        [("even", ("even", 2))],
    ),
    "map_values": (lambda n: n.key_by(parity).map_values(checked), ["('odd', 1)", "('odd', 3)"], [("even", 2)]),
    "event_time": (lambda n: n.event_time(checked), ["1", "3"], [2]),
    "repartition": (lambda n: n.repartition(2, lambda each, _: checked(each) % 2), ["1", "3"], [2]),
    "a-wrong-partition": (lambda n: n.repartition(2, lambda each, _: 7 if each == 2 else 0), ["1", "3"], [2]),
    "behind-a-shuffle": (lambda n: n.repartition(2).map(checked), ["1", "3"], [2]),
    "behind-a-state": (lambda n: n.distinct().map(checked), ["1", "3"], [2]),
    "in-a-branch": (lambda n: (n.filter(bool).map(lambda each: each), n.map(checked))[1], ["1", "3"], [2]),
    "of-some-elements": (lambda n: n.flat_map(lambda e: [e, -e]).map(checked), ["-1", "-2", "-3", "1", "3"], [2]),
    "reduce_by_key": (
        lambda n: n.flat_map(lambda each: [(parity(each), each)] * (each % 3)).reduce_by_key(total),
        ["('even', 2)", "('odd', 1)"],
        [("even", 2)],
    ),
    "map_with_state": (
        lambda n: pairs(n).map_with_state(int, lambda state, each: (state, checked(each))),
        ["('odd', 1)", "('odd', 3)"],
        [("even", 2)],
    ),
    "reduce_by_key_and_window": (
        lambda n: timed(n.flat_map(lambda e: [e, e + 10])).reduce_by_key_and_window(TEN, total),
        ["odd 28"],
        ["even"],
    ),
    "aggregate_by_key_and_window": (lambda n: timed(n).aggregate_by_key_and_window(TEN, Totals()), ["odd 4"], ["even"]),
    "reduce_by_window": (lambda n: n.event_time(lambda _: 1).reduce_by_window(TEN, total), [], []),
    "a-session": (
        lambda n: timed(n.flat_map(lambda e: [e, e] if e == 2 else [e])).reduce_by_key_and_window(
            session_window(5), total
        ),
        ["odd 4"],
        ["even"],
    ),
    "a-count-window": (
        lambda n: pairs(n.flat_map(lambda e: [e, e])).reduce_by_key_and_window(count_window(2), total),
        ["('odd', 2)", "('odd', 6)"],
        ["even"],
    ),
    "join": (joined, ["odd 2", "odd 4", "odd 4", "odd 6"], ["even"]),
    "behind-a-window": (
        lambda n: timed(n).reduce_by_key_and_window(TEN, max).map(lambda each: checked(each[1])),
        ["3"],
        None,
    ),
    "map_columns": (
        lambda n: columns(n).map_columns(lambda b: failing_columns(b) and b),
        ["{'x': 1}", "{'x': 3}"],
        None,
    ),
    "filter_columns": (lambda n: columns(n).filter_columns(failing_columns), ["{'x': 1}", "{'x': 3}"], None),
    "to_columns": (
        lambda n: n.map(lambda e: {"x": "two" if e == 2 else e}).to_columns({"x": pa.int64()}),
        ["{'x': 1}", "{'x': 3}"],
        [{"x": "two"}],
    ),
}
"""Each kind of step behind 1, 2 and 3, in which one record or one window fails."""


STOPPED = ["map", "in-a-branch", "repartition", "behind-a-shuffle", "a-session", "join", "to_columns"]
"""Kinds whose failures take different ways to the engine."""


@dataclass
class Seen:
    """What a run showed: the results of each kind as text, and what failed."""

    results: dict[str, list[str]]
    failed: int
    letters: list[DeadLetter]
    errors: int


def shown(element: object) -> str:
    """Text without the times of windows."""
    if isinstance(element, tuple) and isinstance(element[0], KeyedWindow):
        return f"{element[0].key} {element[1]}"
    return str(element)


def named(kind: str, element: object) -> tuple[str, str]:
    return kind, shown(element)


def records(stream: Streamlet[Any] | ColumnStreamlet) -> Streamlet[Any]:
    return stream.rows() if isinstance(stream, ColumnStreamlet) else stream


def grouped(kinds: Iterable[str], results: Iterable[tuple[str, str]]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {kind: [] for kind in kinds}
    for kind, text in results:
        found[kind].append(text)
    return {kind: sorted(texts) for kind, texts in found.items()}


def simulated(builder: Builder, streams: Mapping[str, Any], config: Config) -> Seen:
    for kind, stream in streams.items():
        records(stream).map(partial(named, kind)).to_sink(Collect("results"))
    run = run_simulated(builder, config)
    return Seen(grouped(streams, run["results"]), run.failed, run.letters, len(run.errors))


def in_levels(builder: Builder, streams: Mapping[str, Any], config: Config, cut: int | None = None) -> Seen:
    for kind, stream in streams.items():
        records(stream).map(partial(named, kind)).log()
    with tempfile.TemporaryDirectory() as folder:
        run = LevelRun(plan_of(builder.graph(), 2, uuid.uuid4().hex, cut, config.values()), Path(folder))
        run.run()
    shown_ones = {(each.operator, each.place) for each in run.failures}
    return Seen(grouped(streams, map(literal_eval, run.lines)), run.failed, run.letters, len(shown_ones))


def in_micro_batches(builder: Builder, streams: Mapping[str, Any], config: Config) -> Seen:
    return in_levels(builder, streams, config, 1)


ENGINES = [simulated, in_levels, in_micro_batches]
Engine = Callable[[Builder, Mapping[str, Any], Config], Seen]


def run(engine: Engine, kinds: Iterable[str], rule: str | None, **config: str) -> Seen:
    """All kinds in one pipeline."""
    builder = Builder()
    streams: dict[str, Any] = {}
    for kind in kinds:
        stream = STEPS[kind][0](builder.new_source(Items([1, 2, 3]))).set_name(f"failing-{kind}")
        streams[kind] = stream if rule is None else stream.on_error(rule)
    return engine(builder, streams, Config({key.replace("_", "."): value for key, value in config.items()}))


@pytest.mark.parametrize("engine", ENGINES)
def test_a_dead_letter_has_what_failed_and_its_step(engine: Engine) -> None:
    """One for each failure that is counted, on each engine, and the results of a run that skips."""
    seen = run(engine, STEPS, "dead_letter")
    assert seen.results == {kind: list(results) for kind, (_, results, _) in STEPS.items()}
    assert seen.failed == seen.errors == len(STEPS)
    assert sorted(each.step for each in seen.letters) == sorted(f"failing-{kind}" for kind in STEPS)
    for letter in seen.letters:
        values = STEPS[letter.step.removeprefix("failing-")][2]
        assert letter.step_number > 0
        assert (letter.outcome, letter.failures) == ("failed", 1)
        assert letter.error
        assert letter.emitted_s == letter.failed_s > 0
        assert isinstance(letter.values, list)
        assert values is None or letter.values[: len(values)] == values, letter.step


@pytest.mark.parametrize("engine", [simulated, in_levels])
def test_a_step_that_skips_goes_on_although_the_topology_stops(engine: Engine) -> None:
    """The rule of the step comes before that of the topology; a failure is counted and shown."""
    seen = run(engine, STEPS, "skip", topology_on_error="stop")
    assert seen.results == {kind: list(results) for kind, (_, results, _) in STEPS.items()}
    assert seen.failed == seen.errors == len(STEPS)
    assert seen.letters == []


@pytest.mark.parametrize("engine", [simulated, in_micro_batches])
@pytest.mark.parametrize("kind", STOPPED)
def test_a_step_that_stops_ends_the_run_with_its_error(kind: str, engine: Engine) -> None:
    """The error names the step; nothing else decides."""
    with pytest.raises((TopologyFailedError, UserCodeError), match=f"operator 'failing-{kind}'"):
        run(engine, [kind], "stop")


@pytest.mark.parametrize("engine", [simulated, in_levels])
def test_without_a_rule_the_topology_decides(engine: Engine) -> None:
    """Also on Spark."""
    seen = run(engine, STOPPED, None)
    assert seen.results == {kind: list(STEPS[kind][1]) for kind in STOPPED}
    assert seen.failed == seen.errors == len(STOPPED)
    assert seen.letters == []
    with pytest.raises((TopologyFailedError, UserCodeError), match="operator 'failing-map'"):
        run(engine, ["map"], None, topology_on_error="stop")


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("end", ["consume", "to_sink"])
def test_the_end_of_a_stream_has_a_rule(end: str, engine: Engine) -> None:
    """Its element is lost for this end alone."""
    builder = Builder()
    numbers = builder.new_source(Items([1, 2, 3]))
    if end == "consume":
        numbers.consume(checked, on_error="dead_letter")
    else:
        numbers.to_sink(Refusing(), on_error="dead_letter")
    seen = engine(builder, {"end": numbers}, Config())
    assert seen.results["end"] == ["1", "2", "3"]
    assert seen.failed == 1
    assert [each.values for each in seen.letters] == [[2]]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("acked", [False, True], ids=["at most once", "at least once"])
def test_a_letter_says_where_the_element_was_in_its_source(engine: Engine, acked: bool, tmp_path: Path) -> None:
    """The partition, and which element of it; with any delivery."""
    file = tmp_path / "numbers.txt"
    file.write_text("1\n2\nthree\n4\n")
    builder = Builder()
    numbers = builder.new_source(TextFiles(str(file))).map(int).on_error("dead_letter")
    semantics = Config.ATLEAST_ONCE if acked else Config.ATMOST_ONCE
    seen = engine(builder, {"map": numbers}, Config().set_delivery_semantics(semantics))
    assert seen.results["map"] == ["1", "2", "4"]
    (letter,) = seen.letters
    assert letter.values == ["three"]
    assert "numbers.txt" in str(letter.tup_id)
    assert "ValueError: invalid literal" in letter.error
    assert "Traceback" in letter.trace


class Unreadable:
    """A value that no other process can load."""

    def __reduce__(self) -> tuple[Callable[[str], int], tuple[str]]:
        return int, ("unreadable",)

    def __str__(self) -> str:
        msg = "no text"
        raise ValueError(msg)

    __repr__ = __str__


def plus_one(value: Any) -> int:  # noqa: ANN401  # what authors do
    return int(1 + value)


@pytest.mark.parametrize("engine", ENGINES)
def test_a_letter_of_a_value_that_cannot_travel_is_kept(engine: Engine) -> None:
    """Where its values do not load, it has their text; and a value without a text costs nothing else."""
    builder = Builder()
    values = builder.new_source(Items([1, 2])).map(lambda number: Unreadable() if number == 1 else number)
    seen = engine(builder, {"map": values.map(plus_one).on_error("dead_letter")}, Config())
    assert seen.results["map"] == ["3"]
    assert len(seen.letters) == 1


@pytest.mark.parametrize("engine", ENGINES)
def test_each_step_has_its_own_rule(engine: Engine) -> None:
    """Steps of one stage, of which one keeps, one skips, and one has no rule."""
    builder = Builder()
    numbers = builder.new_source(Items([0, 1, 2, 3]))
    kept = numbers.map(checked).on_error("dead_letter")
    skipped = kept.map(lambda number: 6 // number).on_error("skip")
    seen = engine(builder, {"map": skipped.map(lambda number: 1 // (number - 2))}, Config())
    assert seen.results["map"] == ["0"]
    assert seen.failed == 3
    assert [each.values for each in seen.letters] == [[2]]


def test_a_rule_that_is_none_is_refused() -> None:
    """With the ones that there are."""
    numbers = Builder().new_source(Items([1])).map(str)
    for wrong in ("dead_leter", "", None, 3, ["skip"], True):
        with pytest.raises(Exception, match=r"map: on_error=.* is not one of 'dead_letter', 'skip', 'stop'"):
            numbers.on_error(wrong)  # type: ignore[arg-type]  # what authors do
    with pytest.raises(Exception, match="sink: on_error='retry' is not one of"):
        numbers.to_sink(Collect("results"), on_error="retry")
    with pytest.raises(Exception, match=r"nearest: 'dead_letter'"):
        numbers.on_error("dead_leter")


@pytest.mark.parametrize(
    "step",
    [
        lambda numbers: numbers,
        lambda numbers: numbers.union(numbers),
        lambda numbers: numbers.clone(2)[0],
        lambda numbers: numbers.repartition(2),
        lambda numbers: numbers.distinct(),
        lambda numbers: pairs(numbers).count_by_key(),
        lambda numbers: timed(numbers).count_by_key_and_window(TEN),
        lambda numbers: timed(numbers).reduce_by_key_and_window(TEN, total).late,
        lambda numbers: timed(numbers).reduce_by_key_and_window(TEN, total).early(5),
    ],
    ids=["source", "union", "clone", "repartition", "distinct", "count", "count in windows", "late", "early"],
)
def test_a_step_without_a_function_has_no_rule(step: Callable[[Streamlet[int]], Any]) -> None:
    """A rule there would promise what never happens."""
    stream = step(Builder().new_source(Items([1])))
    with pytest.raises(Exception, match=r"on_error='skip': (no function of yours runs|no record fails in a source)"):
        stream.on_error("skip")
