"""Views: one pipeline as a batch over history and live, and readers that see both as one."""

from __future__ import annotations

import random
from collections import Counter
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from heron.errors import ConfigError, HeronError, TopologyError
from heron_simulator import Simulation
from heron_streamlet import Builder, Config, Items
from heron_streamlet.topology.topology_compiler import compile_topology
from heron_streamlet.views import Count, HistoryAndLive, Monoid, Sum, TopK, View, ViewReader
from heron_streamlet.views.sides import HistorySide, LiveSide, for_side
from heron_testing.fake_clock import FakeClock
from heron_testing.pipelines.shared_views import SHARED_VIEWS, SharedViews

EXACT = Config().set_delivery_semantics(Config.EFFECTIVELY_ONCE)
SPAN = 10

Click = tuple[float, str, int]
CLICKS = st.lists(
    st.tuples(st.integers(0, 59).map(float), st.sampled_from("abcd"), st.integers(0, 9)), min_size=1, max_size=60
)


@pytest.fixture(autouse=True)
def _fresh() -> None:
    SharedViews.begin()


def pipeline(view: View[Any, Any], archive: list[Click], live: list[Click], until: float | None = None) -> Builder:
    builder = Builder()
    source = HistoryAndLive(Items(archive), Items(live), until=until)
    clicks = builder.new_source(source).event_time(lambda click: click[0], lag=1000)
    clicks.key_by(lambda click: click[1], lambda click: click[2]).to_view(view)
    return builder


def run(builder: Builder, side: LiveSide | HistorySide, seed: int | None = None) -> None:
    """Runs one side in the simulator, to its end. It takes no checkpoints, so transactions are committed at the end."""
    graph = for_side(builder.graph(), side, EXACT.values())
    with Simulation(compile_topology("views", graph, {}), clock=FakeClock(), seed=seed) as simulation:
        simulation.run_until_finished()
        assert not simulation.errors()


def answer(view: View[Any, Any], keys: str = "abcd") -> dict[object, Any]:
    return dict(ViewReader(view, SharedViews.open({})).read(keys).values)


def counts(clicks: list[Click]) -> dict[object, int]:
    found = Counter(click[1] for click in clicks)
    return {key: found[key] for key in "abcd"}


@settings(max_examples=40, deadline=None)
@given(clicks=CLICKS, until=st.sampled_from([0, 10, 25, 60]), first=st.booleans(), seed=st.integers(0, 3))
def test_history_and_live_are_one_answer(clicks: list[Click], until: float, first: bool, seed: int) -> None:
    """Both sides see all elements; each element counts once, whichever side comes first."""
    SharedViews.begin()
    view = View("clicks", Count(), span=SPAN)
    builder = pipeline(view, clicks, clicks, until)
    sides: list[LiveSide | HistorySide] = [LiveSide(SHARED_VIEWS), HistorySide(SHARED_VIEWS)]
    for side in sides if first else reversed(sides):
        run(builder, side, seed)
    assert answer(view) == counts(clicks)
    reader: ViewReader[int] = ViewReader(view, SharedViews.open({}))
    assert list(reader.keys()) == sorted({each[1] for each in clicks})


@pytest.mark.parametrize(
    ("monoid", "expected"),
    [(Sum[int](), {"a": 6, "b": 4, "c": 0, "d": 0}), (TopK[int](2), {"a": [3, 2], "b": [4], "c": [], "d": []})],
)
def test_monoids_merge_over_both_sides(monoid: Monoid[Any, Any, Any], expected: object) -> None:
    clicks = [(1.0, "a", 1), (12.0, "a", 2), (31.0, "a", 3), (32.0, "b", 4)]
    view = View("values", monoid, span=SPAN)
    builder = pipeline(view, clicks[:3], clicks[1:], until=20)
    run(builder, LiveSide(SHARED_VIEWS))
    run(builder, HistorySide(SHARED_VIEWS))
    assert answer(view) == expected


def test_an_answer_says_how_far_each_side_is() -> None:
    """The reader judges an answer by the end of its batch, and by the age of the live values."""
    view = View("clicks", Count(), span=SPAN)
    store = SharedViews.open({})
    reader: ViewReader[int] = ViewReader(view, store)
    found = reader.read(["a"])
    assert (found.values, found.until, found.age_s) == ({"a": 0}, None, None)
    builder = pipeline(view, [(1.0, "a", 0)], [(25.0, "a", 0)], until=29)
    run(builder, HistorySide(SHARED_VIEWS))
    run(builder, LiveSide(SHARED_VIEWS))
    found = reader.read(["a"])
    assert found.values == {"a": 2}
    assert found.until == datetime(1970, 1, 1, 0, 0, 20, tzinfo=UTC)  # the start of the span of 29
    assert found.age_s is not None
    assert 0 <= found.age_s < 600


def test_a_later_batch_repairs_what_was_late() -> None:
    """The live side drops what is too late for it; a recount of history has it."""
    view = View("clicks", Count(), span=SPAN, keep=0)
    late = [(1.0, "a", 0), (35.0, "a", 0), (2.0, "a", 0)]
    builder = Builder()
    both = HistoryAndLive(Items(late), Items(late), until=40)
    timed = builder.new_source(both).event_time(lambda click: click[0])
    timed.key_by(lambda click: click[1]).to_view(view)
    run(builder, LiveSide(SHARED_VIEWS))
    assert answer(view, "a") == {"a": 2}
    run(builder, HistorySide(SHARED_VIEWS))
    assert answer(view, "a") == {"a": 3}


def test_the_store_sees_few_of_the_updates() -> None:
    """A key is written once for each checkpoint, however hot it is. The load is that of Zipf, with the exponent 1."""
    keys = [f"ad-{rank}" for rank in range(1, 801)]
    chosen = random.Random(5).choices(keys, [1 / rank for rank in range(1, 801)], k=50_000)
    view = View("clicks", Count(), span=SPAN)
    run(pipeline(view, [], [(float(number % 9), key, 1) for number, key in enumerate(chosen)]), LiveSide(SHARED_VIEWS))
    store = SharedViews.open({})
    assert ViewReader(view, store).read(set(chosen)).values == Counter(chosen)
    assert store.staged_values == len(set(chosen)) <= len(chosen) / 50


def refused(error: type[HeronError], text: str, builder: Builder, side: LiveSide | HistorySide, config: Config) -> None:
    with pytest.raises(error, match=text):
        for_side(builder.graph(), side, config.values())


def test_a_batch_of_the_future_is_refused() -> None:
    """It would hide all that happens until then, and every correct batch would be refused as an older one."""
    builder = Builder()
    source = HistoryAndLive(Items([(1, 2)]), Items([(1, 2)]), until=datetime(2200, 1, 1, tzinfo=UTC))
    builder.new_source(source).event_time(lambda pair: pair[0]).to_view(View("clicks", Count()))
    refused(TopologyError, "'source-1'.* in the future", builder, HistorySide(SHARED_VIEWS), Config())
    for_side(builder.graph(), LiveSide(SHARED_VIEWS), EXACT.values())


def test_wrong_pipelines_are_refused() -> None:
    view = View("clicks", Count())
    refused(ConfigError, "EFFECTIVELY_ONCE", pipeline(view, [], []), LiveSide(SHARED_VIEWS), Config())
    refused(
        TopologyError, r"names no store.* `store: \{driver: sqlite\}`", pipeline(view, [], []), LiveSide(None), EXACT
    )
    builder = Builder()
    builder.new_source(Items([(1, 2)])).to_view(view)
    refused(TopologyError, "no event time|has none", builder, HistorySide(SHARED_VIEWS), Config())
    builder = Builder()
    pairs = builder.new_source(Items([(1, 2)])).event_time(lambda pair: pair[0])
    pairs.to_view(view)
    pairs.to_view(View("clicks", Sum[int]()))
    refused(TopologyError, "written by .* already", builder, HistorySide(SHARED_VIEWS), Config())
    with pytest.raises(TopologyError, match="not a View"):
        pairs.to_view("clicks")  # type: ignore[arg-type]
