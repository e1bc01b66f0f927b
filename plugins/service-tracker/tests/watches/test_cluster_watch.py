"""The watch of a cluster, with a client that answers as a test wants."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from contextlib import nullcontext
from types import SimpleNamespace
from typing import cast

import pytest

from heron.clock import monotonic_s
from heron_cli.client import Client, TopologyEntry, TopologyStatus
from heron_service_tracker.watches.cluster_watch import ClusterWatch
from heron_service_tracker.watches.observations import Observations
from heron_testing.fake_clock import FakeClock
from heron_testing.waiting import wait_until


@pytest.mark.parametrize("somebody_looks", [True, False])
def test_a_cluster_that_nobody_looks_at_is_listed_seldom(
    make_entry: Callable[..., TopologyEntry], clock: FakeClock, somebody_looks: bool
) -> None:
    """A list reads many nodes of each topology. A page has to show a new topology soon."""
    rounds, lists = Counter[str](), Counter[str]()

    class Counted(Observations):
        def lists_are_read(self, cluster: str) -> bool:
            rounds["near"] += 1
            return super().lists_are_read(cluster)

    observations = Counted(("near",), clock)
    if somebody_looks:
        observations.clusters()
    clock.advance(29.0)

    def listed() -> SimpleNamespace:
        lists["near"] += 1
        return SimpleNamespace(entries=(make_entry("words", "killed"),))

    remote = SimpleNamespace(last_report=lambda: None)
    client = SimpleNamespace(list=listed, topology=lambda _name: nullcontext(remote))
    opened = cast("Client", nullcontext(client))
    watch = ClusterWatch("near", lambda: opened, observations, list_period_s=0.001, period_s=1.0)
    watch.start()
    try:
        wait_until(lambda: rounds["near"] >= 20, 20.0, "many rounds")
    finally:
        watch.stop()
        watch.join(monotonic_s() + 20.0)
    share = lists["near"] / rounds["near"]  # of five rounds, one lists without a question
    assert share > 1.0 if somebody_looks else 0.2 < share < 0.4


def test_a_run_without_a_report_is_not_asked_for_ever(
    make_entry: Callable[..., TopologyEntry],
    make_status: Callable[..., TopologyStatus],
    observations: Observations,
) -> None:
    """A tracker may know hundreds of ended runs, and each question is a connection. A report may be a little late."""
    entries = tuple(make_entry(name, "killed") for name in ("words", "lost"))
    lists, asked = Counter[str](), Counter[str]()

    class Remote:
        def __init__(self, name: str) -> None:
            self._name = name

        def last_report(self) -> TopologyStatus | None:
            asked[self._name] += 1
            ended = make_status(state="killed", ended_at_s=2000.0)
            return ended if self._name == "words" and asked["words"] == 2 else None

    def listed() -> SimpleNamespace:
        lists["near"] += 1
        return SimpleNamespace(entries=entries)

    client = SimpleNamespace(list=listed, topology=lambda name: nullcontext(Remote(name)))
    opened = cast("Client", nullcontext(client))
    watch = ClusterWatch("near", lambda: opened, observations, list_period_s=0.001, period_s=1.0)
    watch.start()
    try:
        wait_until(lambda: lists["near"] > 20, 20.0, "many lists")
    finally:
        watch.stop()
        watch.join(monotonic_s() + 20.0)
    assert asked == {"words": 2, "lost": 5}
    found = observations.topology("near", "words").status
    assert found is not None
    assert found.state == "killed"
