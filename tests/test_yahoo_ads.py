"""The Yahoo streaming benchmark counts what a recount counts, in rows and in columns; its events are reproducible."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest
from bench.query_runs import BLOCK
from bench.trial import TOPOLOGIES
from bench.yahoo_recount import recount

from heron_streamlet import Builder, KeyedWindow, StageContext
from heron_testing.pipelines.collected import Collect
from heron_testing.pipelines.simulated_runs import run_simulated

ROUNDS = 2
WINDOWS = 2  # in a block
FIRST_S = 1_436_918_400
JAVA = [
    (
        "00000001-0000-4000-8000-000000000037",
        "00000002-0000-4000-8000-000000000011",
        "00000003-0000-4000-8000-000000000041",
        "sponsored-search",
        "click",
        1436918400000,
        "1.2.3.4",
    ),
    (
        "00000001-0000-4000-8000-000000000000",
        "00000002-0000-4000-8000-000000000001",
        "00000003-0000-4000-8000-00000000022a",
        "banner",
        "purchase",
        1436918400000,
        "1.2.3.4",
    ),
    (
        "00000001-0000-4000-8000-00000000004b",
        "00000002-0000-4000-8000-00000000005b",
        "00000003-0000-4000-8000-0000000002fd",
        "mobile",
        "view",
        1436918419999,
        "1.2.3.4",
    ),
]


@pytest.fixture(scope="module")
def ads() -> Iterator[ModuleType]:
    """The topology file, which finds its neighbours by its folder."""
    sys.path.insert(0, str(TOPOLOGIES))
    try:
        yield importlib.import_module("yahoo_ads")
    finally:
        sys.path.remove(str(TOPOLOGIES))


def expected(rounds: int) -> list[tuple[int, str, int]]:
    counts = recount()
    return sorted(
        (number * WINDOWS + window, campaign, count)
        for number in range(rounds)
        for (window, campaign), count in counts.items()
    )


def places(found: list[tuple[KeyedWindow[str], int]]) -> list[tuple[int, str, int]]:
    return sorted((int(place.window.start.timestamp() - FIRST_S) // 10, place.key, count) for place, count in found)


@pytest.mark.matrix
@pytest.mark.parametrize(("partitions", "rounds"), [(1, 1), (2, ROUNDS)])
@pytest.mark.parametrize("form", ["rows", "columns"])
def test_each_form_counts_what_a_recount_counts(ads: ModuleType, form: str, partitions: int, rounds: int) -> None:
    """All windows of all rounds, also when sources are read in parallel."""
    builder = Builder()
    if form == "rows":
        source = builder.new_source(ads.ad_events(rounds, partitions)).set_num_partitions(partitions)
        ads.count_rows(source).to_sink(Collect("counts"))
    else:
        columns = builder.new_columns(ads.ad_batches(rounds, partitions)).set_num_partitions(partitions)
        ads.count_columns(columns).to_sink(Collect("counts"))
    run = run_simulated(builder, seed=3)
    assert run.errors == ()
    assert places(run["counts"]) == expected(rounds)


@pytest.mark.matrix
def test_recount_has_every_campaign_and_a_third_of_the_events() -> None:
    """Otherwise the equal results would say little."""
    counts = recount()
    assert len(counts) == 100 * WINDOWS
    assert min(counts.values()) > 250
    assert 0.32 < sum(counts.values()) / BLOCK < 0.35


@pytest.mark.matrix
def test_source_goes_on_at_any_position(ads: ModuleType) -> None:
    """Events are a function of their number, in memory and one by one, also in a later round."""
    source = ads.ad_events(ROUNDS, 2)
    context = StageContext("events", 0, 2)
    at = BLOCK // 2 - 3
    reader = source.open("1", at, context)
    first, second = reader.read(10), reader.read(10)
    events = sys.modules["ad_events"]
    numbers = [2 * place + 1 for place in range(at, at + 13)]
    assert [*first, *second] == [events.event(number) for number in numbers] == events.later_block(numbers)
    assert reader.position == at + 13
    assert source.open("1", BLOCK, context).read(1) is None


def test_first_events_are_those_of_the_java_program(ads: ModuleType) -> None:
    """``AdEvents.java`` printed these; a different generator would measure different work."""
    events = sys.modules["ad_events"]
    assert [tuple(events.event(number)) for number in (0, 1, 199_999)] == JAVA


def test_source_waits_until_all_partitions_are_open(ads: ModuleType, tmp_path: Path) -> None:
    """The clock starts when no partition makes its block any more."""
    source = ads.ad_events(1, 2, str(tmp_path))
    context = StageContext("events", 0, 2)
    reader = source.open("0", None, context)
    assert reader.read(5) == ()
    source.open("1", None, context)
    assert len(reader.read(5)) == 5
    assert [path.name for path in tmp_path.glob("begin-*")] == ["begin-0"]
