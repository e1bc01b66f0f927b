"""The sensor of latency: the 99th percentile of the time from the emit of a tuple to the end of its tree."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Sequence
from typing import ClassVar

from heron.ipc.documents.metric_names import COMPLETE_LATENCY
from heron.spi.health import Sensor
from heron.spi.health_values import Measurement, Observation, Subject
from heron_health_manager.sensors.window import Window

__all__ = ["LatencySensor"]


class LatencySensor(Sensor):
    """``complete-p99-s`` of each source: that of its slowest task, in the middle of the window."""

    metrics: ClassVar[frozenset[str] | None] = frozenset({COMPLETE_LATENCY})

    def measure(self, window: Sequence[Observation]) -> Iterable[Measurement]:
        """`Sensor.measure`."""
        kept = Window.over(window)
        for component in kept.newest.shape.components if kept.kept and kept.newest else ():
            if component.kind != "spout":
                continue
            moments = []
            for observation in kept.kept:
                found = [
                    each.p99
                    for each in observation.named(COMPLETE_LATENCY)
                    if each.task_id in component.tasks and each.p99 is not None and math.isfinite(each.p99)
                ]
                if found:
                    moments.append(max(found))
            if moments:
                yield Measurement("complete-p99-s", Subject(component.name), statistics.median(moments))
