"""What a diagnoser finds, once in a round: other diagnosers build on it."""

from __future__ import annotations

from collections.abc import Sequence

from heron.spi.health import Diagnoser
from heron.spi.health_values import Diagnosis, Measurements, Symptom

__all__ = ["diagnosed"]


def diagnosed(diagnoser: Diagnoser, symptoms: Sequence[Symptom], measurements: Measurements) -> tuple[Diagnosis, ...]:
    """The diagnoses; only the first call with this sequence of symptoms asks the diagnoser."""
    key = diagnoser, id(symptoms)  # a comparison of thousands of symptoms would cost more than most diagnosers
    _, found = measurements.kept(key, lambda: (symptoms, tuple(diagnoser.diagnose(symptoms, measurements))))
    return found
