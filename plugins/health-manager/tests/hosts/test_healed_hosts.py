"""Reports, judge and moves together: a model of several topologies on hosts of which some are slow."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

from hypothesis import given
from hypothesis import strategies as st

from heron.spi.health_values import ComponentShape, Measurement, Measurements, Subject, TopologyShape
from heron.state_nodes.host_blocks import HostBlocks
from heron.state_nodes.host_report import HostReport, HostSigns
from heron_health_manager.hosts.host_signs import signs_of
from heron_health_manager.hosts.judge import HostRules, judged, most_blocked

LOOK_S = 15.0
NOISE = 0.1
RULES = HostRules()
COMPONENTS = {"split": 1000.0, "count": 50.0}
"""Tuples per second of a task on a host that is well."""


@dataclass
class ModelTopology:
    """A topology with a task of each component in each container, on the hosts where its containers are."""

    name: str
    host_of: dict[int, str]
    signs: dict[str, HostSigns] = field(default_factory=dict)

    def report(self, slow: dict[str, float], noise: random.Random, now_s: float) -> HostReport:
        """One look: the true rate of each task is that of its host, and differs a little each time."""
        shapes, values = [], []
        for number, (name, rate) in enumerate(COMPONENTS.items()):
            tasks = {100 * number + container: container for container in self.host_of}
            shapes.append(ComponentShape(name, "bolt", tasks))
            for task, container in tasks.items():
                speed = noise.uniform(1 - NOISE, 1 + NOISE) / slow.get(self.host_of[container], 1.0)
                values.append(Measurement("true-rate", Subject(name, task), rate * speed))
        measurements = Measurements(TopologyShape(self.name, tuple(shapes)), values)
        found = signs_of(measurements, self.host_of, self.signs, {})
        self.signs = {each.host: each for each in found}
        return HostReport(self.name, self.name, now_s, found)

    def leave(self, blocked: tuple[str, ...], hosts: list[str]) -> None:
        """Move one container from a blocked host, as the health manager does between two cool-downs."""
        others = [each for each in hosts if each not in blocked]
        for container, host in self.host_of.items():
            if host in blocked:
                self.host_of[container] = min(others, key=lambda each: list(self.host_of.values()).count(each))
                return


@given(
    hosts=st.integers(4, 12),
    topologies=st.integers(1, 4),
    bad=st.integers(0, 3),
    factor=st.floats(2.5, 20.0),
    seed=st.integers(0, 2**32),
)
def test_slow_hosts_are_left_and_no_other_host_is_blocked(
    hosts: int, topologies: int, bad: int, factor: float, seed: int
) -> None:
    """Within the budget all containers leave the slow hosts in some minutes; without slow hosts nothing moves."""
    names = [f"n{number}" for number in range(hosts)]
    slow = dict.fromkeys(names[: min(bad, most_blocked(hosts, RULES))], factor)
    mine = [ModelTopology(f"t{number}", dict(enumerate(names, start=1))) for number in range(topologies)]
    noise, blocks, now_s = random.Random(seed), HostBlocks(), 0.0
    for _ in range(RULES.looks + len(slow) + 1):
        now_s += LOOK_S
        blocks = judged(blocks, [each.report(slow, noise, now_s) for each in mine], now_s, RULES)
        blocked = blocks.hosts(now_s)
        assert set(blocked) <= slow.keys()
        for each in mine:
            each.leave(blocked, names)
    assert set(blocks.hosts(now_s)) == slow.keys()
    assert all(slow.keys().isdisjoint(each.host_of.values()) for each in mine)
