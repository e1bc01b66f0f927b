"""The interface of a bench."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import TypeVar

from bench.findings import Findings, Pace

__all__ = ["Bench", "alternate"]

S = TypeVar("S")
T = TypeVar("T")


class Bench(ABC):
    """Something with a name that can be measured."""

    name: str

    @abstractmethod
    def run(self, pace: Pace) -> Findings:
        """Measure.

        Raises:
            BenchError: when a run fails or counts wrongly.
        """


def alternate(subjects: Sequence[S], pairs: int, measure: Callable[[S], T]) -> dict[S, list[T]]:
    """Measure each subject once in each pair; the order alternates, because a later run may find a warmer machine."""
    found: dict[S, list[T]] = {each: [] for each in subjects}
    for number in range(pairs):
        for subject in subjects[:: -1 if number % 2 else 1]:
            found[subject].append(measure(subject))
    return found
