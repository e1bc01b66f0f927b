"""The report is written seldom, and a state manager or scheduler that is away costs nothing else."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

import pytest

from heron.errors import SchedulerError
from heron.spi.health_values import ComponentShape, Measurement, Measurements, Subject, TopologyShape
from heron.spi.scheduler import ContainerStatus, JobStatus, Scheduler, SchedulerState
from heron.spi.statemgr import NodeKind, StateManager
from heron.state_nodes.host_blocks import HostBlock, change_host_blocks
from heron.state_nodes.host_report import HostReport, decode_host_report
from heron_health_manager.diagnosing.policy_round import Round
from heron_health_manager.hosts.host_reporter import HostReporter
from heron_statemgr_localfs.state_manager import LocalFsOptions, LocalFsStateManager
from heron_testing.fake_clock import FakeClock


@dataclass
class Places:
    """A scheduler that knows the hosts of two containers."""

    host_of: dict[int, str] = field(default_factory=lambda: {1: "n1", 2: "n2"})
    asked: int = 0
    away: bool = False

    def status(self, _topology: str) -> JobStatus:
        """`Scheduler.status`."""
        self.asked += 1
        if self.away:
            msg = "the scheduler does not answer"
            raise SchedulerError(msg)
        containers = tuple(ContainerStatus(each, True, 1, host=host) for each, host in self.host_of.items())
        return JobStatus(SchedulerState.RUNNING, containers, "words-1")


def found(rate: float = 100.0, deaths: int = 0) -> Round:
    """A round: task 2, in container 2, has that rate and those deaths."""
    split = ComponentShape("split", "bolt", {1: 1, 2: 2})
    values = [
        Measurement("true-rate", Subject("split", 1), 100.0),
        Measurement("true-rate", Subject("split", 2), rate),
        Measurement("recent-restarts", Subject("split", 2), deaths),
    ]
    return Round(Measurements(TopologyShape("words", (split,)), values), (), (), ())


@pytest.fixture
def clock() -> FakeClock:
    """The time."""
    return FakeClock()


@pytest.fixture
def statemgr(tmp_path: Path) -> StateManager:
    """The state manager."""
    return LocalFsStateManager(LocalFsOptions(str(tmp_path)))


@pytest.fixture
def places() -> Places:
    """The scheduler."""
    return Places()


@pytest.fixture
def reporter(statemgr: StateManager, places: Places, clock: FakeClock) -> HostReporter:
    """The reporter of one run."""
    return HostReporter(statemgr, cast("Scheduler", places), ("words", "words-1"), clock)


def written(statemgr: StateManager) -> HostReport | None:
    node = statemgr.get(NodeKind.HOSTS, "words")
    return decode_host_report(node.value, "words") if node else None


def test_a_report_is_written_every_15_s(
    reporter: HostReporter, statemgr: StateManager, places: Places, clock: FakeClock
) -> None:
    """Rounds come each second; the scheduler of a site and the state manager are asked seldom."""
    for _ in range(16):
        reporter.blocked()
        reporter.report(found(25.0))
        clock.advance(1.0)
    report = written(statemgr)
    assert report is not None
    assert {each.host: (each.slowdown, each.looks) for each in report.hosts} == {"n1": (0.25, 0), "n2": (4.0, 2)}
    assert places.asked == 2


def test_containers_on_blocked_hosts_are_told(reporter: HostReporter, statemgr: StateManager, clock: FakeClock) -> None:
    """A container whose host is known and not blocked has 0 s: that is the effect of a move."""
    now_s = clock.wall_s()
    change_host_blocks(statemgr, now_s, lambda each: each.with_block(HostBlock("n2", now_s - 30, now_s + 99, "ann")))
    assert reporter.blocked() == {1: 0.0, 2: 30.0}


def test_a_scheduler_that_is_away_is_no_reason_to_act(reporter: HostReporter, places: Places, clock: FakeClock) -> None:
    """Nothing is known then, and the next look asks again."""
    reporter.blocked()
    places.away = True
    clock.advance(15.0)
    assert reporter.blocked() == {}
    places.away = False
    clock.advance(15.0)
    assert reporter.blocked() == {1: 0.0, 2: 0.0}


def test_deaths_stay_with_the_host_that_a_container_has_left(
    reporter: HostReporter, statemgr: StateManager, places: Places, clock: FakeClock
) -> None:
    """Otherwise each container that flees from a bad host would make the next host bad."""
    reporter.blocked()
    reporter.report(found(deaths=4))
    places.host_of[2] = "n3"
    clock.advance(15.0)
    reporter.blocked()
    reporter.report(found(deaths=5))
    report = written(statemgr)
    assert report is not None
    assert {each.host: each.deaths for each in report.hosts} == {"n1": 0, "n3": 0}
