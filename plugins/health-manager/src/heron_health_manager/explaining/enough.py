"""How long a load must be observed before it can be explained. Pure.

Most causes are seen within some seconds. A task that is stuck, a source that stalls and memory that grows need longer:
while one of them may be under way, the observation goes on.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from heron.spi.health_values import Measurements, Observation
from heron_health_manager.diagnosing.detectors import StalledDetector, StuckDetector
from heron_health_manager.diagnosing.thresholds import GROWTH_BYTES_PER_S, QUIET_S, STILL_S
from heron_health_manager.sensors.cause_sensors import LEAST_MOMENTS, ProgressSensor
from heron_health_manager.sensors.flow_sensors import QueueSensor, SourceSensor
from heron_health_manager.sensors.task_sensors import TaskSensor
from heron_health_manager.sensors.window import Window, slope

__all__ = ["observed"]

_LEAST_S = 5.0
_SENSORS = ProgressSensor(), QueueSensor(), TaskSensor(), SourceSensor(600.0)
_DETECTORS = StuckDetector(QUIET_S), StalledDetector(QUIET_S)


def observed(observations: Iterable[Observation]) -> list[Observation]:
    """The observations until they are enough, or until there are no more."""
    window: list[Observation] = []
    for each in observations:
        window.append(each)
        if window[-1].at_s - window[0].at_s >= _LEAST_S and not _may_stand_still(window) and not _may_grow(window):
            break
    return window


def _may_stand_still(window: Sequence[Observation]) -> bool:
    kept = Window(window)
    measurements = Measurements(window[-1].shape, (each for sensor in _SENSORS for each in sensor.measure(kept)))
    return any(symptom.value < STILL_S for detector in _DETECTORS for symptom in detector.detect(measurements))


def _may_grow(window: Sequence[Observation]) -> bool:
    if len(window) >= LEAST_MOMENTS:
        return False
    memory = Window(window).series("resident-bytes")
    return any((slope(series) or 0.0) >= GROWTH_BYTES_PER_S for series in memory.values())
