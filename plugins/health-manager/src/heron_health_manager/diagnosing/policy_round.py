"""One round of a policy: observations become diagnoses with the actions that would help. Pure."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

from heron.spi.health import HealthPolicy, Resolver
from heron.spi.health_values import Action, Diagnosis, Measurements, Observation, Symptom
from heron_health_manager.diagnosing.diagnosed import diagnosed
from heron_health_manager.diagnosing.doubts import credible
from heron_health_manager.sensors.window import Window

__all__ = ["Finding", "Parts", "Round", "run_round"]

T = TypeVar("T")

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Finding:
    """A diagnosis, and the action against it; None if no resolver knows one."""

    diagnosis: Diagnosis
    action: Action | None


@dataclass(frozen=True, slots=True)
class Round:
    """What a policy found: the measurements, the symptoms, and the findings, the most confident first.

    `failed` names what was left out: parts that raised, with the error, and contradictory metrics with the value.
    """

    measurements: Measurements
    symptoms: tuple[Symptom, ...]
    findings: tuple[Finding, ...]
    failed: tuple[str, ...]


def run_round(policy: HealthPolicy, window: Sequence[Observation], parts: Parts | None = None) -> Round | None:
    """Runs the parts of a policy once, over the observations of its look-back window; None without observations.

    `parts` names the part that runs, for another thread that waits.

    A part that raises is named in the result; the others go on. So are contradictory metrics: nothing rests on them.
    """
    if not window:
        return None
    parts, kept = parts or Parts(), Window(window)
    measured = [each for sensor in policy.sensors() for each in parts.results(sensor, sensor.measure, kept)]
    measurements, doubtful = credible(Measurements(window[-1].shape, measured), measured)
    symptoms = tuple(
        each for detector in policy.detectors() for each in parts.results(detector, detector.detect, measurements)
    )
    diagnoses = [
        each
        for diagnoser in policy.diagnosers()
        for each in parts.results(diagnoser, diagnosed, diagnoser, symptoms, measurements)
    ]
    diagnoses.sort(key=lambda each: (-each.confidence, each.name, each.subject))
    findings = tuple(Finding(each, parts.action(policy, each, measurements)) for each in diagnoses)
    return Round(measurements, symptoms, findings, (*parts.failed, *([doubtful] if doubtful else [])))


class Parts:
    """Calls the parts, each guarded: a part may come from a third party. `running` names the one that runs, or ""."""

    def __init__(self) -> None:
        self.failed: list[str] = []
        self.running = ""

    def results(self, part: object, call: Callable[..., Iterable[T]], *arguments: object) -> list[T]:
        self.running = type(part).__name__
        try:
            return list(call(*arguments))
        except Exception as error:
            self._note(part, error)
            return []
        finally:
            self.running = ""

    def action(self, policy: HealthPolicy, diagnosis: Diagnosis, measurements: Measurements) -> Action | None:
        for resolver in policy.resolvers():
            for action in self.results(resolver, _actions, resolver, diagnosis, measurements):
                return action
        return None

    def _note(self, part: object, error: Exception) -> None:
        line = f"part {type(part).__name__} failed: {type(error).__name__}: {error}"
        _log.warning("a health policy: %s; it is left out in this round", line, exc_info=error)
        self.failed.append(line)


def _actions(resolver: Resolver, diagnosis: Diagnosis, measurements: Measurements) -> Iterator[Action]:
    action = resolver.resolve(diagnosis, measurements)
    if action is not None:
        yield action
