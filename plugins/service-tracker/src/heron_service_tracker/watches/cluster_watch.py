"""The watch of one cluster: one thread lists its topologies and starts and stops their watches.

Each cluster has its own thread and its own clients. A state manager that is away stops only the list of its cluster;
topologies whose topology managers answer stay live.
"""

from __future__ import annotations

import itertools
import logging
import threading

from heron.clock import monotonic_s
from heron.driver_kit.redaction import redact_for_command
from heron.errors import HeronError
from heron_cli.client import Client, TopologyEntry
from heron_service_tracker.observed.observed import LIVE_STATES
from heron_service_tracker.watches.observations import Observations
from heron_service_tracker.watches.topology_watch import OpenClient, TopologyWatch

__all__ = ["ClusterWatch"]

_SELDOM = 5  # periods between two lists while nobody looks at the cluster
_REPORT_LISTS = 5  # a report is written when the run ends; one that was killed by force has none

_log = logging.getLogger(__name__)


class ClusterWatch:
    """Lists the topologies of one profile, and asks each every `period_s` seconds.

    It lists every `list_period_s` seconds while somebody looks at the cluster, and else every fifth time: a list reads
    six nodes of each topology. The first look at the cluster, and a request for an unknown topology, make it list at
    once.
    """

    def __init__(
        self,
        cluster: str,
        open_client: OpenClient,
        observations: Observations,
        *,
        list_period_s: float,
        period_s: float,
    ) -> None:
        self._cluster = cluster
        self._open_client = open_client
        self._observations = observations
        self._list_period_s = list_period_s
        self._period_s = period_s
        self._stop = threading.Event()
        self._wake = threading.Event()
        self._watches: dict[str, TopologyWatch] = {}
        self._reported: dict[str, int] = {}
        self._thread = threading.Thread(target=self._run, name=f"watch {cluster}", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._observations.lists.on_wanted(self._cluster, self._wake.set)
        self._thread.start()

    def stop(self) -> None:
        """Ask all threads of the cluster to end."""
        self._observations.lists.on_wanted(self._cluster, None)
        self._stop.set()
        self._wake.set()
        for each in list(self._watches.values()):
            each.stop()

    def join(self, until_s: float) -> None:
        """Wait for them until a monotonic time; call `stop` first, of all clusters."""
        self._thread.join(max(0.0, until_s - monotonic_s()))
        self.stop()  # what the list has started meanwhile
        for each in list(self._watches.values()):
            each.join(max(0.0, until_s - monotonic_s()))

    def _run(self) -> None:
        while not self._stop.is_set():
            try:
                with self._open_client() as client:
                    for number in itertools.count():
                        if self._stop.is_set():
                            break
                        if number % _SELDOM == 0 or self._observations.lists_are_read(self._cluster):
                            self._list(client)
                        self._wake.wait(self._list_period_s)
                        self._wake.clear()
            except HeronError as error:
                self._observations.fail_cluster(self._cluster, redact_for_command(str(error)))
            except Exception as error:
                _log.exception("the watch of cluster %s failed and begins again", self._cluster)
                self._observations.fail_cluster(self._cluster, type(error).__name__)
            self._stop.wait(self._list_period_s)

    def _list(self, client: Client) -> None:
        entries = client.list().entries
        self._observations.put_list(self._cluster, entries)
        wanted = {each.name for each in entries if each.state in LIVE_STATES}
        for name in set(self._watches) - wanted:
            self._watches.pop(name).stop()
        for name in sorted(wanted - set(self._watches)):
            place = (self._cluster, name)
            self._watches[name] = TopologyWatch(self._open_client, self._observations, place, self._period_s)
            self._watches[name].start()
        self._read_reports(client, [each for each in entries if each.name not in wanted])
        present = {each.id for each in entries}
        self._reported = {run: asked for run, asked in self._reported.items() if run in present}

    def _read_reports(self, client: Client, ended: list[TopologyEntry]) -> None:
        """Read the last report of each run that has ended, once. One that is not there is looked for some times."""
        for each in ended:
            asked = self._reported.get(each.id, 0)
            if asked >= _REPORT_LISTS:
                continue
            try:
                with client.topology(each.name) as remote:
                    report = remote.last_report()
            except HeronError as error:  # one damaged node must not hide the others
                self._observations.fail_topology(self._cluster, each.name, redact_for_command(str(error)))
                continue
            self._reported[each.id] = asked + 1
            if report is not None:
                self._observations.put_status(self._cluster, report, None)
                self._reported[each.id] = _REPORT_LISTS
