"""Measurements that contradict themselves, and therefore show nothing. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from heron.spi.health_values import Measurement, Measurements, Subject
from heron_cli.view.text import counted

__all__ = ["credible"]

_MOST_SHARE = 1.2  # records of two periods may overlap a little
_SHARES = (
    "useful-share",
    "blocked-share",
    "cpu-wait-share",
    "gc-share",
    "input-share",
    "obstructed-share",
    "memory-share",
)
_RATES = ("rate-in", "rate-out", "routed", "true-rate", "source-rate", "target-rate", "backlog", "queue-bytes")


@dataclass(frozen=True, slots=True)
class _Doubt:
    """A measurement that cannot be, and what it is about."""

    subject: Subject
    text: str


def credible(measurements: Measurements, measured: Iterable[Measurement]) -> tuple[Measurements, str]:
    """The measurements without those of doubtful components and containers, and what was doubtful; "" without any.

    Sums over the tasks of a component, and comparisons between them, rest on each of its tasks.
    """
    doubts = tuple(_doubts(measurements))
    if not doubts:
        return measurements, ""
    left_out = {_whole(each.subject) for each in doubts}
    kept = Measurements(measurements.shape, (each for each in measured if _whole(each.subject) not in left_out))
    more = f" and {counted(len(doubts) - 1, 'other value')}" if len(doubts) > 1 else ""
    return kept, f"contradictory metrics: {doubts[0].text}{more}"


def _whole(subject: Subject) -> Subject:
    return Subject(subject.component, container_id=subject.container_id)


def _doubts(measurements: Measurements) -> Iterator[_Doubt]:
    """Shares that are negative or above the whole, and rates and sizes below zero."""
    for name in _SHARES:
        for each in measurements.of(name):
            if not 0.0 <= each.value <= _MOST_SHARE:
                yield _Doubt(each.subject, f"{name} of {each.subject} is {each.value:.0%}")
    for name in _RATES:
        for each in measurements.of(name):
            if each.value < 0:
                yield _Doubt(each.subject, f"{name} of {each.subject} is {each.value:,.0f}")
