"""The watch of one topology: one thread with its own client, whatever the number of requests.

A topology that does not answer delays no other one, and its last values stay. The metrics of a hundred tasks cost
fifteen times what a status costs. So they are read only while somebody looks at them. Most pages and the history need
only figures of tasks, for which half of the metrics are enough. Figures are read every period while somebody looks at
them, else every 10 s; once a minute with the other metrics that the history keeps.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from dataclasses import replace
from zlib import crc32

from heron.clock import monotonic_s, wall_s
from heron.driver_kit.redaction import redact_for_command
from heron.errors import HeronError, StateError
from heron.spi.scheduler import JobLink
from heron_cli.client import Client, HealthRecords, RemoteTopology, TopologyPlans, TopologyStatus
from heron_service_tracker.answers.flow import flow
from heron_service_tracker.observed.observed import MadeAnswers
from heron_service_tracker.observed.task_figures import FIGURE_METRICS, KEPT_METRICS, FiguresOfTasks, figures_of_tasks
from heron_service_tracker.watches.observations import Observations, Reading

__all__ = ["OpenClient", "TopologyWatch", "pause_s"]

OpenClient = Callable[[], Client]

_TIMEOUT_S = 3.0  # an answer takes milliseconds; then the next question finds another leader
_KEPT_S = 60.0  # between two looks at metrics that only the history needs, which has minutes of them
_NO_HEALTH_S = 10.0  # most topologies have no health manager, and a read is a request to the state manager

_log = logging.getLogger(__name__)


class TopologyWatch:
    """Asks one topology for its status every `period_s` seconds, and for its metrics, until it is stopped."""

    def __init__(
        self, open_client: OpenClient, observations: Observations, place: tuple[str, str], period_s: float
    ) -> None:
        self._open_client = open_client
        self._observations = observations
        self._cluster, self._name = place
        self._period_s = period_s
        self._stop = threading.Event()
        self._wake = threading.Event()
        self._plan_version: tuple[str, int] = ("", -1)
        self._health: HealthRecords | None = None
        self._health_at_s = float("-inf")
        self._kept_at_s = float("-inf")
        self._health_error = ""
        self._thread = threading.Thread(target=self._run, name=f"watch {place[0]}/{place[1]}", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._observations.on_look(self._cluster, self._name, self._wake.set)
        self._thread.start()

    def stop(self) -> None:
        """Ask the thread to end; it takes at most the time of one question."""
        self._observations.on_look(self._cluster, self._name, None)
        self._stop.set()
        self._wake.set()

    def join(self, timeout_s: float) -> None:
        """Wait for the end of the thread."""
        self._thread.join(timeout_s)

    def _run(self) -> None:
        while not self._stop.is_set():
            try:
                with self._open_client() as client, client.topology(self._name, timeout_s=_TIMEOUT_S) as remote:
                    self._follow(client, remote)
            except HeronError as error:
                self._observations.fail_topology(self._cluster, self._name, redact_for_command(str(error)))
            except Exception as error:
                _log.exception("the watch of %s/%s failed and begins again", self._cluster, self._name)
                self._observations.fail_topology(self._cluster, self._name, type(error).__name__)
            self._stop.wait(self._period_s)

    def _follow(self, client: Client, remote: RemoteTopology) -> None:
        while not self._stop.is_set():
            status = remote.status()
            metrics = figures = made = None
            try:
                reading = self._observations.reading_due(self._cluster, self._name)
                if reading is Reading.ALL:
                    metrics = remote.metrics(by_task=True)
                    figures = figures_of_tasks(metrics)
                elif reading is Reading.FIGURES:
                    figures = self._figures(remote)
                made = self._made(status, figures)
            finally:  # a status is shown, also when the metrics of a thousand tasks do not come in time
                self._observations.put_status(self._cluster, status, metrics, figures, made)
            if self._plan_version != (status.topology_id, status.plan_version):
                plans = remote.plans()
                self._observations.put_plans(self._cluster, self._name, plans, self._links(client))
                self._plan_version = (status.topology_id, _version_of(plans, status.plan_version))
            self._read_health(remote)
            together = not self._observations.lists_are_read(self._cluster)
            self._wake.wait(pause_s(wall_s(), self._period_s, f"{self._cluster}/{self._name}", together=together))
            self._wake.clear()

    def _figures(self, remote: RemoteTopology) -> FiguresOfTasks:
        now_s = monotonic_s()
        are_kept = now_s - self._kept_at_s >= _KEPT_S
        found = FiguresOfTasks(keeps=are_kept)
        remote.read_task_metrics(KEPT_METRICS if are_kept else FIGURE_METRICS, found)
        if are_kept:
            self._kept_at_s = now_s
        return found

    def _made(self, status: TopologyStatus, figures: FiguresOfTasks | None) -> MadeAnswers | None:
        """What an open page will ask for. It is made here, because the event loop would answer nobody meanwhile."""
        if figures is None or not self._observations.is_followed(self._cluster, self._name):
            return None
        former = self._observations.topology(self._cluster, self._name)
        value = replace(former, status=status, figures=figures)
        flow(value)
        return value.made

    def _links(self, client: Client) -> tuple[JobLink, ...]:
        """The pages of its scheduler about it; none where the scheduler does not answer, which hides nothing else."""
        try:
            return client.status(self._name, timeout_s=_TIMEOUT_S).links
        except HeronError as error:
            _log.info("the pages about %s/%s: %s", self._cluster, self._name, redact_for_command(str(error)))
            return ()

    def _read_health(self, remote: RemoteTopology) -> None:
        """Read the decisions of its health manager: every period while there is one."""
        now_s = monotonic_s()
        if not (self._health and self._health.mode) and now_s - self._health_at_s < _NO_HEALTH_S:
            return
        self._health_at_s = now_s
        try:
            records = remote.health_records()
        except StateError as error:  # a damaged node, or one of a newer version, must not hide the status
            if str(error) != self._health_error:
                self._health_error = str(error)
                _log.warning("the decisions about %s/%s: %s", self._cluster, self._name, redact_for_command(str(error)))
            return
        if records != self._health:
            self._health = records
            self._observations.put_health(self._cluster, self._name, records)


def pause_s(now_s: float, period_s: float, place: str, *, together: bool) -> float:
    """The seconds until the next round of a watch, at most a period; `now_s` is wall-clock seconds.

    While nobody looks, all watches have their rounds at one moment, one after the other, so each finds the code in the
    processor's caches. Otherwise each has a moment of its own, because a request would wait for all of them. With a
    period of a second, no moment is near the end of a second: each second of the history has a round.
    """
    share = 0.5 if together else 0.25 + 0.5 * crc32(place.encode()) / 2**32
    return period_s - (now_s - share * period_s) % period_s


def _version_of(plans: TopologyPlans, wanted: int) -> int:
    """The version that was read; an older one than the status names is read again."""
    return wanted if plans.physical and plans.physical.version >= wanted else -1
