"""Columns mean what records mean: the same results and the same late rows, however the rows are cut in batches."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from heron_streamlet import Builder
from heron_streamlet.windowing.window import SlidingWindow
from heron_testing.pipelines.column_chains import COLUMN_STEPS, TABLES, WINDOWS, in_batches, on_columns, on_records
from heron_testing.pipelines.simulated_runs import run_simulated


@settings(max_examples=50, deadline=None)
@given(
    tables=TABLES,
    cuts=st.lists(st.integers(1, 9), min_size=1, max_size=3),
    steps=st.lists(st.sampled_from(sorted(COLUMN_STEPS)), max_size=4),
    window=st.sampled_from(WINDOWS),
    lateness=st.sampled_from([0, 7]),
    lag=st.sampled_from([0, 4, 100]),
    tasks=st.integers(1, 3),
    seed=st.integers(0, 5),
)
def test_columns_mean_what_records_mean(
    *,
    tables: list[list[dict[str, Any]]],
    cuts: list[int],
    steps: list[str],
    window: SlidingWindow,
    lateness: float,
    lag: float,
    tasks: int,
    seed: int,
) -> None:
    """Also with late and null values, and with sums beyond 64 bits."""
    window = window.allow_lateness(lateness)
    records, columns = Builder(), Builder()
    on_records(records, tables, steps, window, lag, tasks)
    on_columns(columns, [in_batches(each, cuts) for each in tables], steps, window, lag, tasks)
    expected, found = run_simulated(records, seed=seed), run_simulated(columns, seed=seed)
    assert expected.errors == found.errors == ()
    for name in ("rows", "counts", "totals", "late", "whole"):
        assert found[name] == expected[name], name
