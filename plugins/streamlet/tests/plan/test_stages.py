"""Fusion: which operators share a stage, and what leaves it."""

from __future__ import annotations

import operator

import pytest

from heron.errors import TopologyError
from heron_streamlet import Builder, Items, TextFolder, session_window, tumbling_window
from heron_streamlet.plan.graph import Graph
from heron_streamlet.plan.operators import Log
from heron_streamlet.plan.stages import ENDS, End, Form, fuse


def test_operators_without_a_shuffle_are_one_stage() -> None:
    """A chain of functions costs one hop of data, not one for each function."""
    builder = Builder()
    pairs = builder.new_source(Items([1])).map(str).filter(bool).flat_map(list).key_by(str)
    pairs.count_by_key().map(str).log()
    assert [stage.line() for stage in fuse(builder.graph()).stages] == [
        "source-1-to-keyby-1 x 1: source-1 map-1 filter-1 flatmap-1 keyby-1",
        "countbykey-1-to-log-1 x 1: countbykey-1 map-2 log-1",
    ]


def test_another_number_of_partitions_begins_a_stage() -> None:
    """The partitions of an operator are its tasks."""
    builder = Builder()
    builder.new_source(Items([1])).map(str).set_num_partitions(3).filter(bool).repartition(2).log()
    assert [stage.line() for stage in fuse(builder.graph()).stages] == [
        "source-1 x 1: source-1",
        "map-1-to-filter-1 x 3: map-1 filter-1",
        "repartition-1-to-log-1 x 2: repartition-1 log-1",
    ]


def test_a_union_has_no_stage() -> None:
    """Its consumer reads all of its inputs, also through a second union."""
    builder = Builder()
    one, other, third = (builder.new_source(Items([number])) for number in range(3))
    one.union(other).union(third).key_by(str).count_by_key().log()
    plan = fuse(builder.graph())
    assert [stage.name for stage in plan.stages] == [
        *("source-1", "source-2", "source-3", "keyby-1", "countbykey-1-to-log-1")
    ]
    assert [stage.name for stage, _ in plan.inputs(plan.stages[3])] == ["source-1", "source-2", "source-3"]


def test_a_source_contains_what_ends_a_stream_only_where_the_engine_allows_it() -> None:
    """Its rows could not be acked, and its data not be shown with a checkpoint."""
    builder = Builder()
    words = builder.new_source(Items([1])).map(str)
    words.log()
    words.to_sink(TextFolder("out"))
    assert names(builder.graph()) == ["source-1-to-map-1", "log-1", "sink-1"]
    assert names(builder.graph(), (Log,)) == ["source-1-to-log-1", "sink-1"]
    assert names(builder.graph(), ENDS) == ["source-1-to-sink-1"]


def test_a_source_without_an_end_is_refused_where_ends_join_it() -> None:
    """Nothing would ever read what it reads."""
    builder = Builder()
    builder.new_source(Items([1])).map(str)
    with pytest.raises(TopologyError, match=r"map-1.*nothing reads its results"):
        fuse(builder.graph(), ENDS)


def names(graph: Graph, ends: tuple[End, ...] = ()) -> list[str]:
    """The names of the stages."""
    return [stage.name for stage in fuse(graph, ends).stages]


@pytest.mark.parametrize("partitions", [1, 2])
def test_an_end_of_other_partitions_has_a_stage(partitions: int) -> None:
    """A `repartition`, or another number of tasks, gives a slow sink processes of its own."""
    builder = Builder()
    source = builder.new_source(Items([1])).map(str)
    source.repartition(partitions).to_sink(TextFolder("out"))
    assert len(names(builder.graph(), ENDS)) == 2


def test_windows_are_assigned_before_the_shuffle() -> None:
    """There the bound of an element is known; windows by the clock are assigned by the task that closes them."""
    builder = Builder()
    timed = builder.new_source(Items([(1, 1)])).event_time(operator.itemgetter(0))
    timed.count_by_key_and_window(tumbling_window(1)).log()
    timed.count_by_key_and_window(session_window(1)).late.log()
    timed.count_by_key_and_window(tumbling_window(1).by_clock()).log()
    plan = fuse(builder.graph())
    forms = {plan.graph.nodes[outlet.target].name: outlet.form for outlet in plan.stages[0].outlets}
    assert forms == {
        "countbykeyandwindow-1": Form.WINDOW,
        "countbykeyandwindow-2": Form.SESSION,
        "countbykeyandwindow-3": Form.PAIR,
        "late-1": Form.ELEMENT,
    }
    late = next(stage for stage in plan.stages if stage.name == "late-1-to-log-2")
    assert [stage.name for stage, _ in plan.inputs(late)] == ["source-1-to-eventtime-1", "countbykeyandwindow-2"]


def test_the_graph_is_text() -> None:
    """People compare it before and after fusion."""
    builder = Builder()
    source = builder.new_source(Items([(1, 1)])).set_name("clicks").set_num_partitions(2)
    windows = source.event_time(operator.itemgetter(0)).count_by_key_and_window(tumbling_window(1))
    windows.late.log()
    assert builder.graph().lines() == [
        "clicks x 2",
        "eventtime-1 x 2 <- clicks",
        "countbykeyandwindow-1 x 2 <- eventtime-1",
        "late-1 x 2 <- countbykeyandwindow-1.late",
        "log-1 x 2 <- late-1",
    ]
