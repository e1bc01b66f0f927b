"""Policies that find a stuck task, whatever is measured."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from heron.spi.health import Diagnoser, Sensor
from heron.spi.health_values import Diagnosis, Measurement, Measurements, Observation, Subject, Symptom
from heron_health_manager.ds2_policy import Ds2Policy

__all__ = ["RestartPolicy", "StuckDiagnoser"]


class RestartPolicy(Ds2Policy):
    """A policy that restarts a container, and always measures that its task does nothing."""

    def sensors(self) -> Sequence[Sensor]:
        """`HealthPolicy.sensors`."""
        return (_NoRate(),)

    def diagnosers(self) -> Sequence[Diagnoser]:
        """`HealthPolicy.diagnosers`."""
        return (StuckDiagnoser(),)


class _NoRate(Sensor):
    def measure(self, window: Sequence[Observation]) -> Iterator[Measurement]:
        yield Measurement("rate-in", Subject("split", 2), 0.0)


class StuckDiagnoser(Diagnoser):
    """Finds that the task 2 of the component ``split`` is stuck, with this confidence."""

    def __init__(self, confidence: float = 0.9) -> None:
        self._confidence = confidence

    def diagnose(self, symptoms: Sequence[Symptom], measurements: Measurements) -> Iterator[Diagnosis]:
        """`Diagnoser.diagnose`."""
        yield Diagnosis("stuck-task", Subject("split", 2), self._confidence, ("tuples wait, and it executes none",))
