"""What contradicts itself, and therefore shows nothing. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from heron.spi.health_values import Measurements, Subject
from heron_cli.view.text import counted
from heron_health_manager.explaining.deaths import EXECUTOR, Deaths
from heron_health_manager.explaining.facts import Facts

__all__ = ["Doubt", "doubts_of", "uncounted_restarts"]

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
_RATES = ("rate-in", "rate-out", "true-rate", "source-rate", "target-rate", "backlog", "queue-bytes")


@dataclass(frozen=True, slots=True)
class Doubt:
    """A measurement that cannot be, and what it is about."""

    subject: Subject
    text: str


def doubts_of(measurements: Measurements) -> Iterator[Doubt]:
    """Shares that are negative or above the whole, and rates and sizes below zero."""
    for name in _SHARES:
        for each in measurements.of(name):
            if not 0.0 <= each.value <= _MOST_SHARE:
                yield Doubt(each.subject, f"{name} of {each.subject} is {each.value:.0%}")
    for name in _RATES:
        for each in measurements.of(name):
            if each.value < 0:
                yield Doubt(each.subject, f"{name} of {each.subject} is {each.value:,.0f}")


def uncounted_restarts(facts: Facts) -> Iterator[str]:
    """Processes whose status counts more restarts than the history has: it was rotated, or is on other hosts."""
    if facts.events is None or facts.status is None:
        return
    died: dict[tuple[int, str], int] = {}
    for event in facts.events:
        if event.name == "process-died":
            died[event.container_id, event.subject] = died.get((event.container_id, event.subject), 0) + 1
    for each in facts.status.processes:
        known = died.get((each.container_id, each.process), 0)
        if each.process != EXECUTOR and each.restarts > known:
            who = Deaths(each.container_id, each.process, (), (), 0).who
            yield f"the status counts {counted(each.restarts, 'restart')} of {who}, the history of events has {known}"
