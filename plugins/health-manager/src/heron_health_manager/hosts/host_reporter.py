"""Writes the report of one topology, and says which of its containers are on blocked hosts.

A failure is logged and costs nothing else: the report is for other topologies. Where the scheduler cannot avoid hosts,
there is no reporter.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field

from heron.clock import Clock
from heron.errors import HeronError
from heron.spi.health_values import Measurements
from heron.spi.scheduler import Scheduler
from heron.spi.statemgr import NodeKind, StateManager
from heron.state_nodes.host_blocks import read_host_blocks
from heron.state_nodes.host_report import HostReport, HostSigns, encode_host_report
from heron_health_manager.diagnosing.policy_round import Round
from heron_health_manager.hosts.host_signs import signs_of

__all__ = ["HostReporter"]

_PERIOD_S = 15.0  # a scheduler that serves a site should not be asked more often

_log = logging.getLogger(__name__)


@dataclass(slots=True)
class _Known:
    """What the newest looks have found: hosts and blocked containers, signs by host, and the restarts to excuse.

    `moved` are containers that came to another host after the last report.
    """

    host_of: dict[int, str] = field(default_factory=dict)
    blocked_s: dict[int, float] = field(default_factory=dict)
    signs: dict[str, HostSigns] = field(default_factory=dict)
    moved: set[int] = field(default_factory=set)
    excused: dict[int, int] = field(default_factory=dict)


class HostReporter:
    """The hosts of one run. It is used from one thread."""

    def __init__(self, statemgr: StateManager, scheduler: Scheduler, run: tuple[str, str], clock: Clock) -> None:
        """`run` is the topology and the id of its run."""
        self._statemgr = statemgr
        self._scheduler = scheduler
        self._topology, self._topology_id = run
        self._clock = clock
        self._look_at_s = self._write_at_s = float("-inf")
        self._known = _Known()

    def blocked(self) -> Mapping[int, float]:
        """The containers whose hosts are known, with the seconds that their host has been blocked; 0 for others."""
        if self._clock.monotonic_s() - self._look_at_s >= _PERIOD_S:
            self._look_at_s = self._clock.monotonic_s()
            try:
                self._look()
            except HeronError as error:
                _log.warning("the hosts of containers are not known: %s", error)
                self._known.blocked_s = {}
        return self._known.blocked_s

    def report(self, found: Round) -> None:
        """Write what a round has measured of the hosts, at most every 15 s, and not while the plan changes."""
        measurements = found.measurements
        now_s = self._clock.monotonic_s()
        if now_s - self._write_at_s < _PERIOD_S or measurements.shape.changing or not self._known.host_of:
            return
        self._write_at_s = now_s
        self._excuse(measurements)
        known = self._known
        signs = signs_of(measurements, known.host_of, known.signs, known.excused)
        known.signs = {each.host: each for each in signs}
        report = HostReport(self._topology, self._topology_id, self._clock.wall_s(), signs)
        try:
            self._statemgr.set(NodeKind.HOSTS, self._topology, encode_host_report(report))
        except HeronError as error:
            _log.warning("the report of hosts cannot be written now: %s", error)

    def _look(self) -> None:
        status = self._scheduler.status(self._topology).of(self._topology_id)
        hosts = {each.container_id: each.host for each in status.containers if each.running and each.host}
        now_s = self._clock.wall_s()
        blocks = {each.host: each for each in read_host_blocks(self._statemgr).at(now_s).blocks}
        former = self._known.host_of
        self._known.moved |= {each for each, host in hosts.items() if former.get(each, host) != host}
        self._known.host_of = {**former, **hosts}
        self._known.blocked_s = {
            each: max(0.001, now_s - blocks[host].at_s) if host in blocks else 0.0 for each, host in hosts.items()
        }

    def _excuse(self, measurements: Measurements) -> None:
        """Keep how often the tasks of a container that has moved died before it came."""
        for each in measurements.shape.components:
            died = measurements.of_tasks("recent-restarts", each.name)
            moved = [task for task, container in each.tasks.items() if container in self._known.moved]
            self._known.excused.update({task: int(died.get(task, 0)) for task in moved})
        self._known.moved = set()
