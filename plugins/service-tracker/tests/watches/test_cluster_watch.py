"""The watch of a cluster, with a client that answers as a test wants."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from contextlib import nullcontext, suppress
from types import SimpleNamespace
from typing import cast

import pytest

from heron.clock import monotonic_s
from heron_cli.client import Client, TopologyEntry, TopologyStatus
from heron_service_tracker.request_errors import UnknownPlaceError
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


@pytest.mark.parametrize("asks", ["for an unknown topology", "for the list"])
def test_a_topology_that_is_new_is_found_when_somebody_asks(
    make_entry: Callable[..., TopologyEntry], clock: FakeClock, asks: str
) -> None:
    """The watch of an idle tracker would list only after an hour here, and answer that there is no such topology."""
    entries = [make_entry("old", "killed")]
    remote = SimpleNamespace(last_report=lambda: None)
    client = SimpleNamespace(
        list=lambda: SimpleNamespace(entries=tuple(entries)), topology=lambda _name: nullcontext(remote)
    )
    opened = cast("Client", nullcontext(client))
    observations = Observations(("near",), clock)
    watch = ClusterWatch("near", lambda: opened, observations, list_period_s=3600.0, period_s=1.0)

    def names() -> set[str]:
        return {name for each in observations.clusters(looking=False) for name in each.topologies}

    watch.start()
    try:
        wait_until(lambda: names() == {"old"}, 20.0, "the first list")
        entries.append(make_entry("new", "killed"))
        if asks == "for the list":
            clock.advance(31.0)
            observations.clusters()
        else:
            clock.advance(1.0)
            with pytest.raises(UnknownPlaceError):
                observations.topology("near", "new")
        wait_until(lambda: names() == {"old", "new"}, 20.0, "another list")
    finally:
        watch.stop()
        watch.join(monotonic_s() + 20.0)


def test_a_list_is_wanted_at_the_first_look_and_once_a_second_for_unknown_names(
    observations: Observations, clock: FakeClock
) -> None:
    """A list reads many nodes, and a client may ask for a name that does not exist again and again."""
    wanted = Counter[str]()
    observations.lists.on_wanted("near", lambda: wanted.update(["near"]))

    def ask(name: str) -> int:
        with suppress(UnknownPlaceError):
            observations.topology("near", name)
        return wanted["near"]

    assert [ask("words"), ask("words"), ask("nothing")] == [1, 1, 1]
    clock.advance(1.0)
    assert [ask("words"), ask("nothing")] == [1, 2]
    observations.put_list("near", [observations.cluster("near").topologies["words"].entry])
    assert ask("nothing") == 2
    clock.advance(31.0)
    assert ask("words") == 3
    observations.lists.on_wanted("near", None)
    clock.advance(31.0)
    assert ask("words") == 3


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
