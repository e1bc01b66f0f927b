"""The newest values of all clusters: watches write them, requests read them, and live streams wait for a change.

One lock guards the table, and each value is replaced as a whole. A request takes a reference to a frozen value, so it
never waits for a topology.
"""

from __future__ import annotations

import enum
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import astuple, dataclass, replace

from heron.clock import Clock
from heron.errors import known, nearest
from heron.spi.scheduler import JobLink
from heron_cli.client import HealthRecords, MetricsRow, TopologyEntry, TopologyPlans, TopologyStatus
from heron_service_tracker.observed.observed import (
    EVENTS_KEPT,
    VERSIONS_KEPT,
    MadeAnswers,
    ObservedCluster,
    ObservedEvent,
    ObservedTopology,
)
from heron_service_tracker.observed.recent_failures import failures_after
from heron_service_tracker.observed.recent_memory import memory_after
from heron_service_tracker.observed.seen_checkpoints import checkpoints_after
from heron_service_tracker.observed.task_figures import FiguresOfTasks, figures_of_tasks
from heron_service_tracker.request_errors import UnknownPlaceError
from heron_service_tracker.watches.list_looks import LOOKED_S, ListLooks
from heron_service_tracker.watches.plan_changes import new_versions
from heron_service_tracker.watches.status_events import StatusEvent, events_between, plan_event

__all__ = ["METRICS_S", "Observations", "Reading"]

Listener = Callable[[ObservedTopology], None]

METRICS_S = 10.0
"""The period of figures that nobody looks at, in seconds; the history of tasks has buckets of a minute."""

_SHOWN = 100  # characters of a name that is not known
_UNKNOWN_S = 1.0  # between two lists for names that are not known: a client may ask for one again and again
_NEVER = float("-inf")


class Reading(enum.Enum):
    """What a watch reads of the metrics: nothing, those that figures need, or all of them."""

    NOTHING = enum.auto()
    FIGURES = enum.auto()
    ALL = enum.auto()


@dataclass(frozen=True, slots=True)
class _Look:
    """Somebody asks for figures or metrics, in monotonic seconds: since when, and when for the last time."""

    since_s: float
    last_s: float

    def goes_on(self, now_s: float) -> bool:
        return now_s - self.last_s < LOOKED_S


class Observations:
    """The clusters and their topologies. Thread-safe; no method blocks on anything but the lock."""

    def __init__(self, clusters: Iterable[str], clock: Clock) -> None:
        self.clock = clock
        self._lock = threading.Lock()
        self._clusters = {name: ObservedCluster(name, {}) for name in clusters}
        self._listeners: dict[tuple[str, str], list[Listener]] = {}
        self._looks: dict[tuple[str, str, Reading], _Look] = {}
        self._wakes: dict[tuple[str, str], Callable[[], None]] = {}
        self.lists = ListLooks(clock)
        self.on_status: Listener | None = None
        """Called after each status of any topology, from the thread of its watch; set before the watches start."""

    def clusters(self, *, looking: bool = True) -> tuple[ObservedCluster, ...]:
        """Return every cluster, in the order of the command line; `looking` as a reader of lists does."""
        with self._lock:
            found = tuple(self._clusters.values())
        return tuple(self.cluster(each.name) for each in found) if looking else found

    def cluster(self, name: str) -> ObservedCluster:
        """Return one cluster; raise `UnknownPlaceError` when the tracker does not serve it.

        If nobody has looked at it lately, its watch reads its list now, because what is known of it may be old.
        """
        if name not in self._clusters:
            name = name[:_SHOWN]
            msg = f"cluster {name!r} is unknown{nearest(name, self._clusters)}; known: {known(self._clusters)}"
            raise UnknownPlaceError(msg)
        self.lists.look(name)
        with self._lock:
            return self._clusters[name]

    def topology(self, cluster: str, name: str) -> ObservedTopology:
        """Return one topology; raise `UnknownPlaceError` when the cluster has none of that name.

        The watch of the cluster reads its list then, at most once a second: the topology may be new.
        """
        of_cluster = self.cluster(cluster)
        if (found := of_cluster.topologies.get(name)) is not None:
            return found
        listed_s = _NEVER if of_cluster.observed_at_s is None else of_cluster.observed_at_s
        if self.clock.monotonic_s() - listed_s >= _UNKNOWN_S:
            self.lists.want(cluster)
        names = of_cluster.topologies
        why = f"; the cluster does not answer: {of_cluster.error}" if of_cluster.error else ""
        name = name[:_SHOWN]
        msg = f"cluster {cluster!r} has no topology {name!r}{nearest(name, names)}; known: {known(names)}{why}"
        raise UnknownPlaceError(msg)

    def looked_at(self, cluster: str, name: str, reading: Reading) -> ObservedTopology:
        """Return one topology for a reader of its figures or metrics, which are then read more often for a while."""
        found = self.topology(cluster, name)
        now_s, key = self.clock.monotonic_s(), (cluster, name, reading)
        with self._lock:
            former = self._looks.get(key)
            goes_on = former is not None and former.goes_on(now_s)
            self._looks[key] = _Look(former.since_s if former and goes_on else now_s, now_s)
            wake = None if goes_on else self._wakes.get((cluster, name))
        if wake is not None:
            wake()
        return found

    def lists_are_read(self, cluster: str) -> bool:
        """Return whether somebody has asked for the cluster or one of its topologies lately."""
        return self.lists.goes_on(cluster)

    def anybody_looks(self) -> bool:
        """Return whether somebody has asked about any cluster lately."""
        return any(self.lists_are_read(each) for each in self._clusters)

    def reading_due(self, cluster: str, name: str) -> Reading:
        """Return what to read of a topology now: what somebody looks at, and its figures every 10 seconds."""
        now_s = self.clock.monotonic_s()
        with self._lock:
            found = self._clusters[cluster].topologies.get(name)
            looks = {each: self._looks.get((cluster, name, each)) for each in (Reading.ALL, Reading.FIGURES)}
        looked = {each for each, look in looks.items() if look is not None and look.goes_on(now_s)}
        if found is None:
            return Reading.NOTHING
        if Reading.ALL in looked:
            return Reading.ALL
        due = Reading.FIGURES in looked or now_s - found.figures_at_s >= METRICS_S
        return Reading.FIGURES if due else Reading.NOTHING

    def metrics_awaited(self, cluster: str, name: str) -> bool:
        """Return whether somebody looks at the metrics of a topology, which were not read since, nor shortly before."""
        now_s, found = self.clock.monotonic_s(), self.topology(cluster, name)
        with self._lock:
            look = self._looks.get((cluster, name, Reading.ALL))
        is_old = found.metrics_at_s < now_s - METRICS_S
        return is_old and look is not None and found.metrics_at_s < look.since_s and found.is_live and not found.error

    def on_look(self, cluster: str, name: str, wake: Callable[[], None] | None) -> None:
        """Call `wake` when somebody begins to look at a topology, from any thread; None ends it."""
        with self._lock:
            if wake is None:
                self._wakes.pop((cluster, name), None)
            else:
                self._wakes[cluster, name] = wake

    def put_list(self, cluster: str, entries: Iterable[TopologyEntry]) -> None:
        """Take the list of a cluster that answered; topologies that are not in it are forgotten."""
        now_s = self.clock.monotonic_s()
        with self._lock:
            before = self._clusters[cluster].topologies
            topologies = {}
            for entry in entries:
                former = before.get(entry.name)
                if former is None or former.entry.id != entry.id:
                    former = ObservedTopology(cluster, entry, now_s)
                topologies[entry.name] = former if former.entry == entry else replace(former, entry=entry)
            for name in set(before) - set(topologies):
                for each in Reading:
                    self._looks.pop((cluster, name, each), None)
            self._clusters[cluster] = ObservedCluster(cluster, topologies, now_s, "")

    def fail_cluster(self, cluster: str, error: str) -> None:
        """Keep what is known of a cluster that does not answer, with the reason."""
        with self._lock:
            self._clusters[cluster] = replace(self._clusters[cluster], error=error)

    def put_status(
        self,
        cluster: str,
        status: TopologyStatus,
        metrics: tuple[MetricsRow, ...] | None,
        figures: FiguresOfTasks | None = None,
        made: MadeAnswers | None = None,
    ) -> None:
        """Take an answer of a topology; None keeps the former metrics. Events come from what has changed.

        `figures` are given where they were read without the other metrics, and `made` where it was made of both.
        """
        if metrics is not None and figures is None:
            figures = figures_of_tasks(metrics)
        with self._lock:
            topologies = self._clusters[cluster].topologies
            former = topologies.get(status.topology)
            if former is None or former.entry.id != status.topology_id:
                return  # the list decides which run has the name
            at_s, now_s = self.clock.wall_s(), self.clock.monotonic_s()
            changed = replace(
                _with_events(former, events_between(former.status, status), at_s),
                revision=former.revision + 1,
                status=status,
                metrics=former.metrics if metrics is None else metrics,
                metrics_at_s=former.metrics_at_s if metrics is None else now_s,
                figures=former.figures if figures is None else figures,
                figures_at_s=former.figures_at_s if figures is None else now_s,
                observed_at_s=now_s,
                failures=failures_after(former.failures, former.status, status, now_s),
                memory=former.memory if figures is None else memory_after(former.memory, figures, now_s),
                checkpoints=checkpoints_after(former.checkpoints, former.status, status, at_s),
                error="",
            )
            if made is not None:
                changed.made.take(made)
            listeners = self._keep(changed)
        if self.on_status is not None and status.ended_at_s is None:  # a report of an ended run is no new observation
            self.on_status(changed)
        _tell(listeners, changed)

    def put_plans(
        self, cluster: str, topology: str, plans: TopologyPlans, links: tuple[JobLink, ...] | None = None
    ) -> None:
        """Take the plans of a topology; a version in which people see a change is kept with its changes, as an event.

        `links` are the pages of its scheduler; None keeps those that are known.
        """
        with self._lock:
            former = self._clusters[cluster].topologies.get(topology)
            if former is None:
                return
            found = new_versions(former, plans, self.clock.wall_s())
            events = [plan_event(each) for each in found if each.changes]
            changed = replace(
                _with_events(former, events, self.clock.wall_s()),
                revision=former.revision + 1,
                plans=plans,
                links=former.links if links is None else links,
                versions=(*former.versions, *found)[-VERSIONS_KEPT:],
            )
            listeners = self._keep(changed)
        _tell(listeners, changed)

    def put_health(self, cluster: str, topology: str, records: HealthRecords) -> None:
        """Take the decisions of a topology's health manager."""
        self._change(cluster, topology, {"health": records})

    def fail_topology(self, cluster: str, topology: str, error: str) -> None:
        """Keep what is known of a topology that does not answer, with the reason."""
        self._change(cluster, topology, {"error": error})

    def is_followed(self, cluster: str, topology: str) -> bool:
        """Return whether somebody waits for changes of a topology, as an open page does."""
        with self._lock:
            return (cluster, topology) in self._listeners

    def listen(self, cluster: str, topology: str, listener: Listener) -> None:
        """Call `listener` after each change of a topology, from the thread of its watch; it must return at once."""
        with self._lock:
            self._listeners.setdefault((cluster, topology), []).append(listener)

    def forget(self, cluster: str, topology: str, listener: Listener) -> None:
        """Stop calling the listener; idempotent."""
        with self._lock, suppress(ValueError):
            listeners = self._listeners.get((cluster, topology), [])
            listeners.remove(listener)
            if not listeners:
                self._listeners.pop((cluster, topology), None)

    def _change(self, cluster: str, topology: str, changes: Mapping[str, object]) -> None:
        with self._lock:
            former = self._clusters[cluster].topologies.get(topology)
            if former is None:
                return
            changed: ObservedTopology = replace(former, revision=former.revision + 1, **changes)  # type: ignore[arg-type]
            listeners = self._keep(changed)
        _tell(listeners, changed)

    def _keep(self, changed: ObservedTopology) -> tuple[Listener, ...]:
        """Put a topology in the place of its former value, under the lock; return who waits for the change."""
        of_cluster = self._clusters[changed.cluster]
        topologies = {**of_cluster.topologies, changed.name: changed}
        self._clusters[changed.cluster] = replace(of_cluster, topologies=topologies)
        return tuple(self._listeners.get((changed.cluster, changed.name), ()))


def _with_events(topology: ObservedTopology, found: Sequence[StatusEvent], at_s: float) -> ObservedTopology:
    """The topology with more events, which get the next numbers."""
    if not found:
        return topology
    first = topology.events_seen + 1
    numbered = (ObservedEvent(number, at_s, *astuple(each)) for number, each in enumerate(found, first))
    events = (*topology.events, *numbered)[-EVENTS_KEPT:]
    return replace(topology, events=events, events_seen=topology.events_seen + len(found))


def _tell(listeners: tuple[Listener, ...], changed: ObservedTopology) -> None:
    for each in listeners:
        each(changed)
