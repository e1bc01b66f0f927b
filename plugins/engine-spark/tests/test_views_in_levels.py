"""Views as micro-batches and batches write them: exact whatever dies, at any time a reader looks."""

from __future__ import annotations

import random
import tempfile
import uuid
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from heron_streamlet import Builder, Items
from heron_streamlet.views import Count, HistoryAndLive, View, ViewReader
from heron_streamlet.views.sides import HistorySide, LiveSide, for_side
from heron_testing.pipelines.level_runs import LevelRun, plan_of
from heron_testing.pipelines.shared_views import SHARED_VIEWS, SharedViews

KEYS = "abcde"

Click = tuple[int, str]
CLICKS = st.lists(st.tuples(st.integers(0, 99), st.sampled_from(KEYS)), max_size=60)


@pytest.fixture(autouse=True)
def _fresh() -> None:
    SharedViews.begin()


def level_run(
    side: LiveSide | HistorySide, clicks: list[Click], until: int, folder: Path, slots: int, seed: int
) -> LevelRun:
    builder = Builder()
    source = HistoryAndLive(Items(clicks), Items(clicks), until=until)
    keyed = builder.new_source(source).event_time(lambda click: click[0], lag=1000).key_by(lambda click: click[1])
    keyed.to_view(View("clicks", Count(), span=10))
    rows = 7 if isinstance(side, LiveSide) else None
    plan = plan_of(for_side(builder.graph(), side, {}), slots, uuid.uuid4().hex, rows)
    return LevelRun(plan, folder, random.Random(seed))


@settings(max_examples=60, deadline=None)
@given(clicks=CLICKS, until=st.integers(0, 99), slots=st.integers(1, 4), seed=st.integers(0, 20))
def test_every_reading_is_a_recount(clicks: list[Click], until: int, slots: int, seed: int) -> None:
    """Batches of both sides alternate at random, and attempts fail: what a reader sees was counted once.

    The live side reads in order, so after n batches a reader sees the first 7 n elements, and beyond them those before
    the end of the batch over history, once that is complete.
    """
    SharedViews.begin()
    chance = random.Random(seed)
    reader: ViewReader[int] = ViewReader(View("clicks", Count(), span=10), SharedViews.open({}))
    with tempfile.TemporaryDirectory() as folder:
        live = level_run(LiveSide(SHARED_VIEWS, exact=True), clicks, until, Path(folder) / "live", slots, seed)
        history = level_run(HistorySide(SHARED_VIEWS), clicks, until, Path(folder) / "history", slots, seed)
        waiting, batches = [live, history], 0
        while waiting:
            run = chance.choice(waiting)
            record = run.batch(run.log.newest())
            batches += run is live
            if record.ended:
                waiting.remove(run)
            seen = clicks[: 7 * batches]
            if history not in waiting:
                end = until // 10 * 10
                seen = [each for each in clicks if each[0] < end] + [each for each in seen if each[0] >= end]
            expected = Counter(key for _, key in seen)
            assert reader.read(KEYS).values == {key: expected[key] for key in KEYS}
    assert not live.failures
    assert not history.failures
