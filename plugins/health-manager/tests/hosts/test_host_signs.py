"""What a topology says of its hosts: a slow host shows, and a hot key or a restart does not look like one."""

from __future__ import annotations

from collections.abc import Mapping

from heron.spi.health_values import ComponentShape, Measurement, Measurements, Subject, TopologyShape
from heron.state_nodes.host_report import HostSigns
from heron_health_manager.hosts.host_signs import signs_of

HOSTS = {1: "n1", 2: "n2", 3: "n3"}
"""The hosts of three containers, each with a task of both components."""


def measured(rates: Mapping[int, float], deaths: Mapping[int, int] | None = None) -> Measurements:
    """Measurements of `split` (tasks 1 to 3) and `count` (tasks 4 to 6) in containers 1 to 3."""
    split = ComponentShape("split", "bolt", {1: 1, 2: 2, 3: 3})
    count = ComponentShape("count", "bolt", {4: 1, 5: 2, 6: 3})
    name = {task: each.name for each in (split, count) for task in each.tasks}
    values = [Measurement("true-rate", Subject(name[task], task), rate) for task, rate in rates.items()]
    values += [Measurement("recent-restarts", Subject(name[task], task), died) for task, died in (deaths or {}).items()]
    return Measurements(TopologyShape("words", (split, count)), values)


def by_host(*signs: HostSigns) -> dict[str, HostSigns]:
    return {each.host: each for each in signs}


def test_a_host_whose_tasks_need_longer_is_slow() -> None:
    """Components differ by much; each is compared with itself elsewhere."""
    found = by_host(*signs_of(measured({1: 1000, 2: 250, 3: 1000, 4: 20, 5: 5, 6: 20}), HOSTS, {}, {}))
    assert found["n2"] == HostSigns("n2", 2, 4.0, 0, looks=1)
    assert found["n1"].slowdown == 0.4  # between one task that is as fast, and a slow one
    assert found["n1"].looks == 0


def test_one_slow_component_does_not_condemn_its_host() -> None:
    """A hot key keeps one task busy; the median of two components is not above the limit by it alone."""
    found = by_host(*signs_of(measured({1: 1000, 2: 700, 3: 1000, 4: 20, 5: 20, 6: 20}), HOSTS, {}, {}))
    assert found["n2"].slowdown == 1.21
    assert found["n2"].looks == 0


def test_looks_are_counted_while_the_host_is_bad() -> None:
    """The judge needs several looks of one topology, in a row."""
    slow = measured({1: 1000, 2: 250, 3: 1000, 4: 20, 5: 5, 6: 20})
    well = measured(dict.fromkeys(range(1, 7), 10.0))
    once = by_host(*signs_of(slow, HOSTS, {}, {}))
    twice = by_host(*signs_of(slow, HOSTS, once, {}))
    assert twice["n2"].looks == 2
    assert by_host(*signs_of(well, HOSTS, twice, {}))["n2"].looks == 0


def test_a_restart_of_a_container_is_one_death() -> None:
    """A container with ten tasks that is restarted in order is no crash loop."""
    found = by_host(*signs_of(measured({}, {2: 1, 5: 1}), HOSTS, {}, {}))
    assert found["n2"].deaths == 1
    assert found["n2"].slowdown is None


def test_deaths_on_the_former_host_do_not_count() -> None:
    """A container that was moved from a bad host must not condemn the next one."""
    assert by_host(*signs_of(measured({}, {2: 5}), HOSTS, {}, {2: 5}))["n2"].deaths == 0
    assert by_host(*signs_of(measured({}, {2: 2}), HOSTS, {}, {2: 5}))["n2"].deaths == 0


def test_a_container_whose_host_is_not_known_is_left_out() -> None:
    """It is being started, or its cluster has lost it."""
    rates = measured({1: 1000, 2: 250, 4: 20, 5: 5})
    assert [each.host for each in signs_of(rates, {1: "n1"}, {}, {})] == ["n1"]
