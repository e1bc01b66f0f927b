"""The timelines of the instances of a topology, from the history of its tasks."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from heron.errors import known, nearest
from heron.spi.metricsink import OF_AUTHORS
from heron_service_tracker.history.history_file import EVERY_TASK, HistoryFile, Point
from heron_service_tracker.history.series import TASK_COUNTERS, TASK_METRICS
from heron_service_tracker.observed.engine_metrics import OF_ENGINE
from heron_service_tracker.observed.observed import ObservedTopology
from heron_service_tracker.query.expression import Read
from heron_service_tracker.query.timelines import MINUTE_S, Timeline
from heron_service_tracker.request_errors import MalformedQueryError, UnknownPlaceError

__all__ = ["TaskHistory", "minutes_between"]

_MOST_POINTS = 500_000  # of a query: half a second of reading
_MIB = 1024 * 1024
_HERON = re.compile(r"__(?P<name>[a-z-]+-count)(?:/.*)?")
_OF_HERON = {"__jvm-memory-used-mb": ("resident-bytes", 1 / _MIB)}
_BACK_PRESSURE = re.compile(r"__time_spent_back_pressure_by_compid/(?P<instance>.+)")
_STMGR = "__stmgr__"
_MINUTE_MS = 60_000.0


def minutes_between(start: int, end: int) -> range:
    """Return the starts of the minutes from `start` to `end`, both rounded down, in seconds since 1970."""
    return range(start // MINUTE_S * MINUTE_S, end // MINUTE_S * MINUTE_S + 1, MINUTE_S)


class TaskHistory:
    """Reads for one request. `instances` has the names of Heron by task, `components` those of the topology."""

    def __init__(
        self,
        file: HistoryFile,
        topology: ObservedTopology,
        instances: Mapping[int, str],
        components: Iterable[str],
        times: range,
    ) -> None:
        self._file = file
        self._place = topology.cluster, topology.name
        self._instances = instances
        self._components = tuple(components)
        self._times = times
        self._left = _MOST_POINTS

    def read(self, wanted: Read | float) -> list[Timeline]:
        """Return the timeline of an instance, or of each instance of the component for ``*``.

        Counters are the increments of each minute, levels their means. A number is a timeline with the same value in
        each minute, which has as many points as one that is read.

        Raises:
            UnknownPlaceError: when the component or the instance does not exist.
            MalformedQueryError: when the metric does not exist, or the request reads more than 500,000 points.
            StoreError: when the file cannot be read.
        """
        if isinstance(wanted, float):
            self._charge(1)
            return [Timeline("", dict.fromkeys(self._times, wanted))]
        if wanted.component == _STMGR:
            return self._back_pressure(wanted)
        self._check(wanted.component, self._components, "component")
        name, factor = self._metric(wanted.metric)
        found = self._series(wanted.component, self._task(wanted.instance), name, factor)
        if wanted.instance == "*":
            return found
        return [Timeline("", each.minutes) for each in found]

    def counts(self, metric: str) -> bool:
        """Return whether a metric counts, so that its minutes can be added up."""
        return self._metric(metric)[0] in TASK_COUNTERS

    def _back_pressure(self, wanted: Read) -> list[Timeline]:
        """Heron's stream managers measure it: milliseconds of each minute, by the instance that causes it."""
        match = _BACK_PRESSURE.fullmatch(wanted.metric)
        if match is None:
            msg = f"metric {wanted.metric[:100]!r} of {_STMGR} is not __time_spent_back_pressure_by_compid/INSTANCE"
            raise MalformedQueryError(msg)
        found = self._series("", self._task(match["instance"]), "back-pressure", _MINUTE_MS)
        if match["instance"] == "*":
            return found
        # A task of an earlier run may have the same number, and be of another component: it is one timeline.
        return [Timeline("", {at: value for each in found for at, value in each.minutes.items()})]

    def _series(self, component: str, task_id: int, metric: str, factor: float) -> list[Timeline]:
        self._charge(len(self._instances) if task_id == EVERY_TASK else 1)
        key = (*self._place, component, task_id, metric)
        end = self._times.stop + MINUTE_S
        found = self._file.read(key, MINUTE_S, MINUTE_S, self._times.start, end)
        return [
            Timeline(
                self._instances.get(each.series.task_id, f"{each.series.component}_{each.series.task_id}"),
                {point.at_s: _value(metric, point) * factor for point in each.points if point.at_s in self._times},
            )
            for each in found
        ]

    def _charge(self, timelines: int) -> None:
        self._left -= timelines * len(self._times)
        if self._left < 0:
            msg = f"the query reads more than {_MOST_POINTS} points; ask for a shorter time, or for one instance"
            raise MalformedQueryError(msg)

    def _metric(self, name: str) -> tuple[str, float]:
        if name in _OF_HERON:
            return _OF_HERON[name]
        if name.startswith((OF_AUTHORS, OF_ENGINE)):
            return name, 1.0
        match = _HERON.fullmatch(name)
        found = match["name"] if match else name
        if found not in TASK_METRICS:
            names = (*TASK_METRICS, *_OF_HERON)
            msg = f"metric {name[:100]!r} is unknown{nearest(name[:100], names)}; known of tasks: {known(names)}"
            raise MalformedQueryError(msg)
        return found, 1.0

    def _task(self, instance: str) -> int:
        if instance == "*":
            return EVERY_TASK
        self._check(instance, self._instances.values(), "instance")
        return next(task_id for task_id, name in self._instances.items() if name == instance)

    def _check(self, name: str, names: Iterable[str], what: str) -> None:
        present = tuple(names)
        if name not in present:
            msg = f"there is no {what} {name[:100]!r}{nearest(name[:100], present)}; known: {known(present)}"
            raise UnknownPlaceError(msg)


def _value(metric: str, point: Point) -> float:
    return point.total if metric in TASK_COUNTERS else point.value
