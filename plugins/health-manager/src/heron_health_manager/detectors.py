"""The detectors: limits of single measurements, and comparisons between the tasks of a component."""

from __future__ import annotations

import statistics
from collections.abc import Iterable

from heron.spi.health import Detector
from heron.spi.health_values import Measurements, Subject, Symptom

__all__ = ["DETECTORS", "SkewDetector", "StragglerDetector", "StuckDetector", "ThresholdDetector", "symptoms_of"]

_FEWEST = 2  # tasks: one task cannot differ from the others
_LEAST_QUEUE_BYTES = 1.0


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


class SkewDetector(Detector):
    """A task gets far more than its share of the input: the value is its rate as a multiple of the mean."""

    def __init__(self, times: float) -> None:
        self._times = times

    def detect(self, measurements: Measurements) -> Iterable[Symptom]:
        """`Detector.detect`."""
        for component in measurements.shape.components:
            rates = measurements.of_tasks("rate-in", component.name)
            mean = sum(rates.values()) / len(rates) if len(rates) >= _FEWEST else 0.0
            if mean <= 0:
                continue
            for task, rate in rates.items():
                if rate > self._times * mean:
                    yield Symptom("input-skew", Subject(component.name, task), rate / mean, self._times)


class StragglerDetector(Detector):
    """A task with another speed than its siblings: its true rate as a share of their median."""

    def __init__(self, share: float) -> None:
        self._share = share

    def detect(self, measurements: Measurements) -> Iterable[Symptom]:
        """`Detector.detect`."""
        for component in measurements.shape.components:
            rates = measurements.of_tasks("true-rate", component.name)
            for task, rate in rates.items():
                others = [each for other, each in rates.items() if other != task]
                median = statistics.median(others) if others else 0.0
                if median > 0 and rate < self._share * median:
                    yield Symptom("slow-speed", Subject(component.name, task), rate / median, self._share)


class StuckDetector(Detector):
    """Tuples wait for a task, and it executes none. A task whose code does not return reports nothing at all."""

    def detect(self, measurements: Measurements) -> Iterable[Symptom]:
        """`Detector.detect`."""
        for component in measurements.shape.components:
            if component.kind != "bolt":
                continue
            waiting = measurements.of_tasks("queue-bytes", component.name)
            rates = measurements.of_tasks("rate-in", component.name)
            rooms = measurements.of_tasks("obstructed-share", component.name)
            for task, queued in waiting.items():
                still = rates.get(task, 0.0) <= 0 and rooms.get(task, 0.0) < 0.5
                if queued >= _LEAST_QUEUE_BYTES and still:
                    yield Symptom("no-progress", Subject(component.name, task), queued, 0.0)


DETECTORS: tuple[Detector, ...] = (
    ThresholdDetector("busy", "useful-share", 0.85),
    ThresholdDetector("blocked", "blocked-share", 0.6),
    ThresholdDetector("waits-for-processor", "cpu-wait-share", 0.25),
    ThresholdDetector("collects-garbage", "gc-share", 0.2),
    ThresholdDetector("back-pressure", "pressure-share", 0.3),
    ThresholdDetector("restarts", "restarts", 2.0),
    ThresholdDetector("memory-high", "memory-share", 0.9),
    ThresholdDetector("steal", "host-steal-share", 0.1),
    ThresholdDetector("host-pressed", "host-pressure-share", 0.6),
    ThresholdDetector("throttled-container", "container-throttled-share", 0.1),
    ThresholdDetector("late-stream-manager", "stmgr-late-share", 0.25),
    ThresholdDetector("not-reached", "silent-s", 0.0),
    SkewDetector(1.5),
    StragglerDetector(0.6),
    StuckDetector(),
)
"""The detectors of the policies that are shipped. `docs/health.md` has the reasons for the limits."""
