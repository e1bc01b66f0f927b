"""Columns in levels mean what records mean: in one batch, in many, and when attempts fail in between."""

from __future__ import annotations

import random
import tempfile
import uuid
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from heron_streamlet import Builder
from heron_streamlet.plan.graph import Graph
from heron_streamlet.plan.operators import Write
from heron_streamlet.windowing.window import SlidingWindow
from heron_testing.pipelines.collected import COLLECTED
from heron_testing.pipelines.column_chains import COLUMN_STEPS, TABLES, WINDOWS, in_batches, on_columns, on_records
from heron_testing.pipelines.level_runs import LevelRun, plan_of
from heron_testing.pipelines.reference_engine import results_of


def in_levels(graph: Graph, cut: int | None, slots: int, chance: random.Random | None) -> dict[str, list[str]]:
    COLLECTED.clear()
    with tempfile.TemporaryDirectory() as folder:
        run = LevelRun(plan_of(graph, slots, uuid.uuid4().hex, cut), Path(folder), chance)
        run.run()
    assert run.failures == []
    return {name: sorted(map(repr, values)) for name, values in COLLECTED.items() if values}


@settings(max_examples=30, deadline=None)
@given(
    tables=TABLES,
    cuts=st.lists(st.integers(1, 9), min_size=1, max_size=3),
    steps=st.lists(st.sampled_from(sorted(COLUMN_STEPS)), max_size=3),
    window=st.sampled_from(WINDOWS),
    lag=st.sampled_from([0, 4, 100]),
    cut=st.sampled_from([None, 1, 2, 5]),
    slots=st.integers(1, 4),
)
def test_columns_mean_what_records_mean(
    tables: list[list[dict[str, Any]]],
    cuts: list[int],
    steps: list[str],
    window: SlidingWindow,
    lag: float,
    cut: int | None,
    slots: int,
) -> None:
    """Also with late rows, in micro-batches of any size and in any number of slots."""
    records, columns = Builder(), Builder()
    on_records(records, tables, steps, window, lag, 1)
    on_columns(columns, [in_batches(each, cuts) for each in tables], steps, window, lag, 1)
    expected: dict[str, list[str]] = {}
    values = results_of(records.graph())
    for node in records.graph().nodes:
        if isinstance(node.operator, Write) and values[node.name]:
            name: str = node.operator.sink.name  # type: ignore[attr-defined]  # a Collect
            expected[name] = sorted(map(repr, values[node.name]))
    assert in_levels(columns.graph(), cut, slots, None) == expected
