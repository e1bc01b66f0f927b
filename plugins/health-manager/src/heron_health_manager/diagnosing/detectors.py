"""The detectors: limits of single measurements, and comparisons between the tasks of a component."""

from __future__ import annotations

import bisect
from collections.abc import Iterable, Sequence

from heron.spi.health import Detector
from heron.spi.health_values import Measurements, Subject, Symptom
from heron_health_manager.diagnosing.thresholds import (
    BLOCKED,
    BUSY,
    GARBAGE,
    GROWTH_BYTES_PER_S,
    LATE,
    MEMORY,
    PRESSED,
    SKEW,
    SLOW,
    STEAL,
    STILL_S,
    WAITS,
)

__all__ = [
    "DETECTORS",
    "BusyDetector",
    "CrossingDetector",
    "GrowthDetector",
    "SkewDetector",
    "SlowerCallsDetector",
    "StalledDetector",
    "StragglerDetector",
    "StuckDetector",
    "ThresholdDetector",
    "symptoms_of",
]

_FEWEST = 2  # tasks: one task cannot differ from the others
_LEAST_QUEUE_BYTES = 1.0
_HELD = 0.5  # of the time: then something else holds the task up


def symptoms_of(symptoms: Iterable[Symptom], name: str) -> dict[Subject, Symptom]:
    """The symptoms of that name by subject."""
    return {each.subject: each for each in symptoms if each.name == name}


class ThresholdDetector(Detector):
    """A symptom of everything whose measurement exceeds a limit."""

    def __init__(self, symptom: str, measurement: str, above: float) -> None:
        self._symptom = symptom
        self._measurement = measurement
        self._above = above

    def detect(self, measurements: Measurements) -> Iterable[Symptom]:
        """`Detector.detect`."""
        for each in measurements.of(self._measurement):
            if each.value > self._above:
                yield Symptom(self._symptom, each.subject, each.value, self._above)


class BusyDetector(Detector):
    """A task needs nearly all of its time itself. Waits for a processor do not count, in proportion to that time."""

    def __init__(self, above: float) -> None:
        self._above = above

    def detect(self, measurements: Measurements) -> Iterable[Symptom]:
        """`Detector.detect`."""
        for each in measurements.of("useful-share"):
            busy = each.value * (1.0 - (measurements.value("cpu-wait-share", each.subject) or 0.0))
            if busy > self._above:
                yield Symptom("busy", each.subject, busy, self._above)


class SkewDetector(Detector):
    """Far more data is routed to a task than to the others: the value is its size as a multiple of the mean."""

    def __init__(self, times: float) -> None:
        self._times = times

    def detect(self, measurements: Measurements) -> Iterable[Symptom]:
        """`Detector.detect`."""
        for component in measurements.shape.components:
            routed = measurements.of_tasks("routed", component.name)
            mean = sum(routed.values()) / len(routed) if len(routed) >= _FEWEST else 0.0
            if mean <= 0:
                continue
            for task, size in routed.items():
                if size > self._times * mean:
                    yield Symptom("input-skew", Subject(component.name, task), size / mean, self._times)


class StragglerDetector(Detector):
    """A task with another speed than its siblings: its true rate as a share of their median.

    A sibling that executes nothing now has the true rate of its life: back pressure of the slow task makes it idle.
    """

    def __init__(self, share: float) -> None:
        self._share = share

    def detect(self, measurements: Measurements) -> Iterable[Symptom]:
        """`Detector.detect`."""
        for component in measurements.shape.components:
            rates = measurements.of_tasks("true-rate", component.name)
            speeds = measurements.of_tasks("life-rate", component.name) | rates
            ascending = sorted(speeds.values())
            for task, rate in rates.items():
                median = _median_without(ascending, rate)
                if median > 0 and rate < self._share * median:
                    yield Symptom("slow-speed", Subject(component.name, task), rate / median, self._share)


class StuckDetector(Detector):
    """Tuples wait for a task, and it executes none. A task whose code does not return reports nothing at all.

    The time is that after which the engine reports a call of user code (`heron.instance.long.call.s`).
    """

    def __init__(self, still_s: float) -> None:
        self._still_s = still_s

    def detect(self, measurements: Measurements) -> Iterable[Symptom]:
        """`Detector.detect`."""
        for component in measurements.shape.components:
            if component.kind != "bolt":
                continue
            waiting = measurements.of_tasks("queue-bytes", component.name)
            came = measurements.of_tasks("came-bytes", component.name)
            stills = measurements.of_tasks("still-s", component.name)
            rooms = measurements.of_tasks("obstructed-share", component.name)
            for task, still_s in stills.items():
                queued = max(waiting.get(task, 0.0), came.get(task, 0.0))
                if queued >= _LEAST_QUEUE_BYTES and still_s >= self._still_s and rooms.get(task, 0.0) < _HELD:
                    yield Symptom("no-progress", Subject(component.name, task), still_s, self._still_s)


class SlowerCallsDetector(Detector):
    """A task waits longer for each tuple than in its life before: the value is the multiple.

    Without a life before, a task counts that is blocked for most of its time.
    """

    def __init__(self, times: float, share: float) -> None:
        self._times = times
        self._share = share

    def detect(self, measurements: Measurements) -> Iterable[Symptom]:
        """`Detector.detect`."""
        for each in measurements.of("blocked-share"):
            times = measurements.value("blocked-times", each.subject)
            useful = measurements.value("useful-share", each.subject) or 0.0
            if times is None and each.value > self._share:
                yield Symptom("blocked", each.subject, each.value, self._share)
            elif times is not None and times >= self._times and each.value > self._share * useful:
                yield Symptom("blocked-longer", each.subject, times, self._times)


class StalledDetector(Detector):
    """Tuples wait at a source, and its spouts emit none, although nothing holds them up: the value is the backlog."""

    def __init__(self, still_s: float) -> None:
        self._still_s = still_s

    def detect(self, measurements: Measurements) -> Iterable[Symptom]:
        """`Detector.detect`."""
        for component in measurements.shape.components:
            subject = Subject(component.name)
            backlog = measurements.value("backlog", subject) or 0.0
            stills = measurements.of_tasks("still-s", component.name)
            held = [
                *measurements.of_tasks("obstructed-share", component.name).values(),
                *measurements.of_tasks("paused-share", component.name).values(),
            ]
            still = bool(stills) and min(stills.values()) >= self._still_s
            if backlog >= 1.0 and still and max(held, default=0.0) < _HELD:
                yield Symptom("source-stalled", subject, min(stills.values()), self._still_s)


class CrossingDetector(Detector):
    """Bytes for a task wait in another container, while the task has none to do: the value is their number.

    The subject is the container of the task. A task that is slow holds up the bytes in its own container first.
    """

    def __init__(self, least_bytes: float, times: float) -> None:
        self._least_bytes = least_bytes
        self._times = times

    def detect(self, measurements: Measurements) -> Iterable[Symptom]:
        """`Detector.detect`."""
        worst: dict[int, float] = {}
        for each in measurements.of("far-bytes"):
            near = measurements.value("near-bytes", each.subject) or 0.0
            useful = measurements.value("useful-share", each.subject)
            idle = useful is not None and useful < BUSY
            if idle and each.value >= self._least_bytes and each.value >= self._times * near:
                home = measurements.shape.component(each.subject.component).tasks[each.subject.task_id]
                worst[home] = max(each.value, worst.get(home, 0.0))
        for container, waiting in worst.items():
            yield Symptom("waits-for-link", Subject(container_id=container), waiting, self._least_bytes)


def _median_without(ascending: Sequence[float], value: float) -> float:
    """The median without one of the values; 0 if there are no others."""
    if len(ascending) < _FEWEST:
        return 0.0
    place = bisect.bisect_left(ascending, value)

    def other(index: int) -> float:
        return ascending[index if index < place else index + 1]

    half, odd = divmod(len(ascending) - 1, 2)
    return other(half) if odd else (other(half - 1) + other(half)) / 2


class GrowthDetector(Detector):
    """The memory of a task grows, and the others of its component do not, or it fills what is free soon.

    The value is its growth in bytes/s. A window that fills grows in all tasks, and it stops.
    """

    def __init__(self, least_bytes_per_s: float, times: float, full_s: float) -> None:
        self._least = least_bytes_per_s
        self._times = times
        self._full_s = full_s

    def detect(self, measurements: Measurements) -> Iterable[Symptom]:
        """`Detector.detect`."""
        for component in measurements.shape.components:
            trends = measurements.of_tasks("memory-trend", component.name)
            highest = sorted(trends.values())[-2:]
            for task, trend in trends.items():
                other = highest[0] if trend == highest[-1] else highest[-1]
                apart = len(highest) == _FEWEST and trend >= self._times * other
                free = measurements.value("memory-free-bytes", Subject(container_id=component.tasks[task]))
                soon = free is not None and free <= trend * self._full_s
                if trend >= self._least and (apart or soon):
                    yield Symptom("memory-grows", Subject(component.name, task), trend, self._least)


DETECTORS: tuple[Detector, ...] = (
    BusyDetector(BUSY),
    ThresholdDetector("full", "useful-share", BUSY),
    SlowerCallsDetector(1.2, BLOCKED),  # 1 / 0.85: calls that use up the time that a component of the right size spares
    ThresholdDetector("waits-for-processor", "cpu-wait-share", WAITS),
    ThresholdDetector("collects-garbage", "gc-share", GARBAGE),
    ThresholdDetector("waits-for-acks", "acks-share", 0.25),
    ThresholdDetector("back-pressure", "pressure-share", 0.3),
    ThresholdDetector("restarts", "recent-restarts", 2.0),
    ThresholdDetector("memory-high", "memory-share", MEMORY),
    ThresholdDetector("steal", "host-steal-share", STEAL),
    ThresholdDetector("host-pressed", "host-pressure-share", PRESSED),
    ThresholdDetector("throttled-container", "container-throttled-share", 0.1),
    ThresholdDetector("late-stream-manager", "stmgr-late-share", LATE),
    ThresholdDetector("not-reached", "silent-s", 0.0),
    ThresholdDetector("on-blocked-host", "host-blocked-s", 0.0),
    SkewDetector(SKEW),
    StragglerDetector(SLOW),
    StuckDetector(STILL_S),
    StalledDetector(STILL_S),
    CrossingDetector(32_768.0, 4.0),
    GrowthDetector(GROWTH_BYTES_PER_S, 5.0, 600.0),
)
"""The detectors of the policies that are shipped. `docs/health.md` has the limits in words."""
