"""The sinks of views: what a checkpoint shows, what a death takes back, and what a smaller topology leaves behind."""

from __future__ import annotations

from typing import Any

import pytest

from heron.errors import StoreError
from heron.spi.store import Batch
from heron_streamlet.connectors.transformer import StageContext
from heron_streamlet.views import Count, View, ViewReader, view_sinks
from heron_streamlet.views.view_sinks import HistorySink, LiveSink
from heron_testing.pipelines.shared_views import SHARED_VIEWS, SharedViews

VIEW = View("clicks", Count(), span=10)


@pytest.fixture
def store() -> SharedViews:
    return SharedViews.begin()


def sink(task: int = 0, tasks: int = 1) -> LiveSink:
    made = LiveSink(VIEW, SHARED_VIEWS)
    made.setup(StageContext("view", task, tasks))
    return made


def seen(store: SharedViews, keys: str = "ab") -> list[int]:
    found: Any = ViewReader(VIEW, store).read(keys).values
    return [found[key] for key in keys]


def test_a_value_is_visible_when_its_checkpoint_is_complete(store: SharedViews) -> None:
    live = sink()
    live.put(((0, "a"), 1))
    live.put(((0, "a"), 2))
    assert seen(store) == [0, 0]
    live.prepare(1)
    live.put(((0, "a"), 3))
    assert seen(store) == [0, 0]
    live.commit(1)
    assert seen(store) == [2, 0]
    assert store.staged_values == 1


def test_what_was_prepared_for_a_checkpoint_that_failed_never_appears(store: SharedViews) -> None:
    """After the death another key comes, so nothing replaces the value of the checkpoint that failed."""
    live = sink()
    live.prepare(1)
    live.commit(1)
    live.put(((0, "a"), 1))
    live.prepare(2)
    live = sink()
    live.restore(1)
    live.put(((0, "b"), 1))
    live.prepare(3)
    live.commit(3)
    assert seen(store) == [0, 1]


def test_a_task_that_lives_on_forgets_what_was_after_the_checkpoint(store: SharedViews) -> None:
    """An update brings tasks back to a checkpoint without a new process."""
    live = sink()
    live.put(((0, "a"), 1))
    live.restore(0)
    live.prepare(1)
    live.commit(1)
    assert seen(store) == [0, 0]


def test_a_death_between_checkpoint_and_commit_is_made_good(store: SharedViews) -> None:
    live = sink()
    live.put(((0, "a"), 1))
    live.prepare(1)
    sink().restore(1)
    assert seen(store) == [1, 0]


def test_a_new_submission_replaces_what_the_former_one_wrote(store: SharedViews) -> None:
    """Its checkpoints are counted from 1 again, and its state begins empty."""
    former = sink()
    former.put(((0, "a"), 9))
    former.prepare(500)
    former.commit(500)
    former.put(((0, "b"), 9))
    former.prepare(501)
    later = LiveSink(VIEW, SHARED_VIEWS, epoch=1)
    later.setup(StageContext("view"))
    later.restore(0)
    later.put(((0, "a"), 1))
    later.prepare(1)
    later.commit(1)
    assert seen(store) == [1, 0]


def test_many_values_are_staged_before_their_checkpoint(store: SharedViews, monkeypatch: pytest.MonkeyPatch) -> None:
    """The cache has a size. What is staged early belongs to the next checkpoint, whatever its number."""
    monkeypatch.setattr(view_sinks, "_CHANGED_AT_MOST", 2)
    live = sink()
    live.prepare(3)
    live.commit(3)
    live.put(((0, "a"), 1))
    live.put(((0, "b"), 1))
    live.put(((0, "a"), 5))
    assert store.staged_values == 2
    assert seen(store) == [0, 0]
    live.prepare(7)
    live.commit(7)
    assert seen(store) == [5, 1]


def test_a_smaller_topology_has_no_old_writers(store: SharedViews) -> None:
    """What the removed task had prepared is complete; its age would grow for ever."""
    first, second = (sink(task, 2) for task in range(2))
    for live in (first, second):
        live.prepare(1)
        live.commit(1)
    second.put(((0, "b"), 4))
    second.prepare(2)
    before_us = store.read("clicks", []).live_at_us
    assert before_us is not None
    first = sink(0, 1)
    first.restore(2)
    first.prepare(3)
    first.commit(3)
    assert seen(store) == [0, 4]
    after_us = store.read("clicks", []).live_at_us
    assert after_us is not None
    assert after_us > before_us


def test_a_key_that_is_too_long_fails_alone(store: SharedViews) -> None:
    """In a checkpoint it would fail all others, and every later checkpoint."""
    live = sink()
    with pytest.raises(StoreError, match="2009 bytes"):
        live.put(((0, "x" * 2000), 1))
    live.put(((0, "a"), 1))
    live.prepare(1)
    live.commit(1)
    history = HistorySink(VIEW, SHARED_VIEWS, Batch(0, "run"))
    history.setup(StageContext("view", 0, 1))
    with pytest.raises(StoreError, match="2009 bytes"):
        history.put(((0, "x" * 2000), 1))
    history.put(((0, "b"), 1))
    history.prepare(1)
    history.commit(1)
    assert seen(store) == [1, 1]
