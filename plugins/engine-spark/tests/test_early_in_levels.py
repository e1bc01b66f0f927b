"""Early results in levels of stages: the micro-batch decides when they come."""

from __future__ import annotations

import ast
import operator
import random
import tempfile
import uuid
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from heron_streamlet import Builder, Items, session_window, tumbling_window
from heron_streamlet.windowing.window import SessionWindow, SlidingWindow
from heron_testing.pipelines.collected import COLLECTED, Collect
from heron_testing.pipelines.early_parts import EVENTS, WINDOWS, Gathered, check_growth, comparable, numbered, parts
from heron_testing.pipelines.level_runs import LevelRun, plan_of
from heron_testing.pipelines.random_chains import Partitions
from heron_testing.pipelines.reference_engine import results_of

CUTS = st.sampled_from([None, 1, 2, 5, 100])
"""Rows that a batch reads of each partition; None for one batch without saved state."""


@pytest.mark.parametrize("name", WINDOWS)
@settings(max_examples=30, deadline=None)
@given(
    inputs=st.lists(EVENTS, min_size=1, max_size=3),
    lag=st.sampled_from([0, 4]),
    cut=CUTS,
    slots=st.integers(1, 3),
    seed=st.integers(0, 5),
)
def test_early_results_are_parts_of_the_final_ones(
    name: str, inputs: list[list[Any]], lag: float, cut: int | None, slots: int, seed: int
) -> None:
    """With each micro-batch for the windows that it has changed; in one batch there are only final results."""
    builder = Builder()
    events = builder.new_source(Partitions(numbered(inputs))).event_time(operator.itemgetter(0), lag=lag)
    pairs = events.key_by(operator.itemgetter(1), operator.itemgetter(2))
    pairs.aggregate_by_key_and_window(WINDOWS[name], Gathered()).early(1).map(parts).log()
    meant = results_of(builder.graph())["map-1"]
    with tempfile.TemporaryDirectory() as folder:
        plan = plan_of(builder.graph(), slots, uuid.uuid4().hex, cut)
        run = LevelRun(plan, Path(folder), random.Random(seed) if cut is not None else None)
        run.run()
    assert run.failures == []
    received = [ast.literal_eval(line) for line in run.lines]
    assert comparable(each for each in received if each[4]) == comparable(meant)
    assert cut is not None or len(received) == len(meant)
    check_growth(received)


@pytest.mark.parametrize("sink", [False, True], ids=["log", "sink"])
def test_a_micro_batch_gives_the_results_so_far(sink: bool, tmp_path: Path) -> None:
    """A stage with a sink begins each batch with the saved state; windows that this batch leaves alone give nothing."""
    COLLECTED.clear()
    builder = Builder()
    events = builder.new_source(Items([(1, "x"), (2, "y"), (3, "x"), (20, "x")])).event_time(operator.itemgetter(0))
    early = events.key_by(operator.itemgetter(1)).count_by_key_and_window(tumbling_window(10)).early(1)
    lines = early.map(lambda each: f"{each.window.key} {each.window.window.start_time:g} {each.result} {each.final}")
    lines.to_sink(Collect("lines")) if sink else lines.log()
    run = LevelRun(plan_of(builder.graph(), 1, f"so far {sink}", 1), tmp_path)
    run.run()
    assert (COLLECTED["lines"] if sink else run.lines) == [
        *("x 0 1 False", "y 0 1 False", "x 0 2 False", "x 0 2 True", "y 0 1 True", "x 20 1 False", "x 20 1 True")
    ]


@pytest.mark.parametrize("window", [session_window(5), tumbling_window(5).allow_lateness(20)], ids=["session", "late"])
@settings(max_examples=30, deadline=None)
@given(inputs=st.lists(EVENTS, min_size=1, max_size=2), cut=st.sampled_from([1, 2]))
def test_windows_behind_early_results_miss_no_final_one(
    window: SessionWindow | SlidingWindow, inputs: list[list[Any]], cut: int
) -> None:
    """A window that closes late gives its final result behind a watermark that has passed it."""
    builder = Builder()
    events = builder.new_source(Partitions(numbered(inputs))).event_time(operator.itemgetter(0))
    finals = events.key_by(lambda _: 0).count_by_key_and_window(window).early(1).filter(lambda each: each.final)
    finals.key_by(lambda _: 0).count_by_key_and_window(tumbling_window(3)).map(str).log()
    with tempfile.TemporaryDirectory() as folder:
        run = LevelRun(plan_of(builder.graph(), 2, uuid.uuid4().hex, cut), Path(folder))
        assert run.run() == sorted(results_of(builder.graph())["map-1"])
