"""The readers of a stream are independent, and so are the elements of one result: a failure costs one of them."""

from __future__ import annotations

from collections.abc import Callable
from operator import itemgetter
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from heron.errors import TopologyFailedError
from heron_streamlet import Builder, Config, Items, Sink, Streamlet, tumbling_window
from heron_testing.pipelines.collected import Collect
from heron_testing.pipelines.simulated_runs import run_simulated


def readers(numbers: Streamlet[int]) -> list[Streamlet[int]]:
    return [numbers, numbers, numbers]


def clones(numbers: Streamlet[int]) -> list[Streamlet[int]]:
    return numbers.clone(3)


def splits(numbers: Streamlet[int]) -> list[Streamlet[int]]:
    return list(numbers.split(dict.fromkeys("abc", lambda _: True)).values())


def clones_of_clones(numbers: Streamlet[int]) -> list[Streamlet[int]]:
    one, other = numbers.clone(2)
    return [*one.clone(2), other]


def behind_a_shuffle(numbers: Streamlet[int]) -> list[Streamlet[int]]:
    return clones(numbers.repartition(2))


def behind_a_state(numbers: Streamlet[int]) -> list[Streamlet[int]]:
    return clones(numbers.distinct())


def behind_windows(numbers: Streamlet[int]) -> list[Streamlet[int]]:
    timed = numbers.event_time(lambda _: 1).key_by(lambda each: each)
    return clones(timed.reduce_by_key_and_window(tumbling_window(10), max).map(itemgetter(1)))


BRANCHES = [readers, clones, splits, clones_of_clones, behind_a_shuffle, behind_a_state, behind_windows]


def divided(stream: Streamlet[int]) -> Streamlet[int]:
    return stream.map(lambda each: 6 // (each - 2))


def divided_elsewhere(stream: Streamlet[int]) -> Streamlet[int]:
    return stream.map(lambda each: 6 // (each - 2)).repartition(2)


def no_partition(stream: Streamlet[int]) -> Streamlet[int]:
    return stream.repartition(2, lambda each, _: 7 if each == 2 else 0)


def no_key(stream: Streamlet[int]) -> Streamlet[Any]:
    return stream.key_by(lambda each: [each] if each == 2 else each).count_by_key()


def filtered(stream: Streamlet[int]) -> Streamlet[int]:
    return stream.filter(lambda each: 6 // (each - 2))


@pytest.mark.parametrize(("at", "acked"), [(0, False), (1, True), (2, False)])
@pytest.mark.parametrize("fails", [divided, divided_elsewhere, no_partition, no_key, filtered])
@pytest.mark.parametrize("branches", BRANCHES)
def test_a_branch_that_fails_costs_no_other_branch(
    branches: Callable[[Streamlet[int]], list[Streamlet[int]]],
    fails: Callable[[Streamlet[int]], Streamlet[Any]],
    at: int,
    acked: bool,
) -> None:
    """In whichever order they were defined, and wherever the stage ends."""
    builder = Builder()
    streams: list[Any] = branches(builder.new_source(Items([1, 2, 3])))
    streams[at] = fails(streams[at])
    for number, stream in enumerate(streams):
        stream.to_sink(Collect(str(number)))
    config = Config().set_delivery_semantics(Config.ATLEAST_ONCE if acked else Config.ATMOST_ONCE)
    run = run_simulated(builder, config)
    assert [len(run[str(number)]) for number in range(3)] == [2 if number == at else 3 for number in range(3)]
    (error,) = run.errors
    assert "operator '" in error
    assert run.failed == 1


class Refusing(Sink[int]):
    """Refuses one number."""

    def put(self, element: int) -> None:
        if element == 2:
            msg = "no two"
            raise ValueError(msg)


def test_a_sink_that_refuses_costs_no_other_sink() -> None:
    """In the stage of a source, and in a stage of its own."""
    builder = Builder()
    numbers = builder.new_source(Items([1, 2, 3]))
    for stream in (numbers, numbers.repartition(1)):
        stream.to_sink(Refusing())
        stream.to_sink(Collect("kept"))
    run = run_simulated(builder)
    assert run["kept"] == [1, 1, 2, 2, 3, 3]
    assert run.failed == 2


@pytest.mark.parametrize("acked", [False, True], ids=["at most once", "at least once"])
def test_elements_of_one_result_fail_alone(acked: bool) -> None:
    """A line of three words of which one fails is two words."""
    builder = Builder()
    numbers = builder.new_source(Items([[1, 2, 3], [2], [4]])).flat_map(lambda each: each)
    numbers.map(lambda each: 6 // (each - 2)).to_sink(Collect("divided"))
    config = Config().set_delivery_semantics(Config.ATLEAST_ONCE if acked else Config.ATMOST_ONCE)
    run = run_simulated(builder, config)
    assert run["divided"] == [-6, 3, 6]
    assert run.failed == 2


def test_rows_of_a_batch_fail_alone() -> None:
    """Behind `rows`, an element is a row; the times of the other branch are those of its rows."""
    builder = Builder()
    timed = builder.new_columns(Items([pa.table({"time": [1, 12, 13], "x": [1, 2, 3]})])).event_time("time", lag=100)
    timed.filter_columns(lambda batch: pc.greater(batch["x"], 0)).rows().map(lambda row: 6 // (row["x"] - 2)).to_sink(
        Collect("rows")
    )
    timed.count_by_key_and_window("x", tumbling_window(10)).map(lambda each: each[0].window.start_time).to_sink(
        Collect("windows")
    )
    run = run_simulated(builder)
    assert run["rows"] == [-6, 6]
    assert run["windows"] == [0.0, 10.0, 10.0]
    assert run.failed == 1


@pytest.mark.parametrize(
    "step",
    [
        lambda stream: stream.flat_map(lambda each: [each]),
        lambda stream: stream.clone(2)[0],
        lambda stream: stream.map(lambda each: each),
    ],
    ids=["flat_map", "clone", "map"],
)
def test_a_chain_may_be_long(step: Callable[[Streamlet[int]], Streamlet[int]]) -> None:
    """Python nests 20 loops and tries in a function: the text continues in another one."""
    builder = Builder()
    stream = builder.new_source(Items([1, 2, 3]))
    for _ in range(30):
        stream.map(lambda each: -each).to_sink(Collect("beside"))
        stream = step(stream)
    stream.map(lambda each: 6 // (each - 2)).to_sink(Collect("end"))
    run = run_simulated(builder)
    assert run["end"] == [-6, 6]
    assert len(run["beside"]) == 90
    assert run.failed == 1
    assert "operator 'map-" in run.errors[0]


def test_a_task_that_is_to_stop_stops_at_a_failure_in_a_branch() -> None:
    """`topology.on.error: stop` holds for every branch."""
    builder = Builder()
    numbers = builder.new_source(Items([1, 2, 3]))
    numbers.map(lambda each: 6 // (each - 2)).to_sink(Collect("divided"))
    numbers.to_sink(Collect("numbers"))
    config = Config().set_user_config("topology.on.error", "stop")
    with pytest.raises(TopologyFailedError, match="operator 'map-1'"):
        run_simulated(builder, config)
