"""The causes that measurements rule out for a component, each with the number that excludes it. Pure."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass

from heron.spi.health_values import ComponentShape, Measurements, Subject
from heron_health_manager.diagnosing.thresholds import BLOCKED, GARBAGE, LATE, MEMORY, SKEW, SLOW, WAITS

__all__ = ["exclusions"]

_FEWEST = 2  # tasks: one task cannot differ from the others


@dataclass(frozen=True, slots=True)
class _Exclusion:
    """A cause, the limit of its detector, and how the measured value is told; `lowest`: a small value shows it."""

    diagnosis: str
    limit: float
    text: str
    value: Callable[[Measurements, ComponentShape], float | None]
    lowest: bool = False

    def excludes(self, value: float) -> bool:
        return value >= self.limit if self.lowest else value <= self.limit


def exclusions(measurements: Measurements, component: str, found: Collection[str]) -> Iterator[str]:
    """The causes that do not hold for a component; `found` are the diagnoses that do. Unmeasured ones are left out."""
    shape = next((each for each in measurements.shape.components if each.name == component), None)
    for each in _EXCLUSIONS if shape is not None else ():
        value = each.value(measurements, shape) if shape is not None else None
        if each.diagnosis not in found and value is not None and value >= 0 and each.excludes(value):
            yield each.text.format(value)


def _most_of_tasks(name: str) -> Callable[[Measurements, ComponentShape], float | None]:
    return lambda measurements, shape: max(measurements.of_tasks(name, shape.name).values(), default=None)


def _most_of_containers(name: str) -> Callable[[Measurements, ComponentShape], float | None]:
    def most(measurements: Measurements, shape: ComponentShape) -> float | None:
        places = {Subject(container_id=each) for each in shape.tasks.values()}
        return max((each.value for each in measurements.of(name) if each.subject in places), default=None)

    return most


def _skew(measurements: Measurements, shape: ComponentShape) -> float | None:
    routed = measurements.of_tasks("routed", shape.name).values()
    mean = sum(routed) / len(routed) if len(routed) >= _FEWEST else 0.0
    return max(routed) / mean if mean > 0 else None


def _slowest(measurements: Measurements, shape: ComponentShape) -> float | None:
    rates = measurements.of_tasks("true-rate", shape.name).values()
    fastest = max(rates, default=0.0)
    return min(rates) / fastest if len(rates) >= _FEWEST and fastest > 0 else None


_EXCLUSIONS = (
    _Exclusion("slow-host", WAITS, "a busy host (tasks wait for a processor {:.0%})", _most_of_tasks("cpu-wait-share")),
    _Exclusion("slow-external-service", BLOCKED, "a slow service (blocked {:.0%})", _most_of_tasks("blocked-share")),
    _Exclusion("data-skew", SKEW, "skew (at most {:.1f} times the mean)", _skew),
    _Exclusion("slow-task", SLOW, "a slow task (the slowest has {:.0%} of the fastest)", _slowest, lowest=True),
    _Exclusion("garbage", GARBAGE, "garbage ({:.0%})", _most_of_tasks("gc-share")),
    _Exclusion("memory-near-limit", MEMORY, "memory ({:.0%} of the limit)", _most_of_containers("memory-share")),
    _Exclusion(
        "slow-stream-manager", LATE, "a slow stream manager (late {:.0%})", _most_of_containers("stmgr-late-share")
    ),
)
"""In the order in which people ask."""
