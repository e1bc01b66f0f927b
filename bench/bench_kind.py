"""The interface of a bench."""

from __future__ import annotations

from abc import ABC, abstractmethod

from bench.findings import Findings, Pace

__all__ = ["Bench"]


class Bench(ABC):
    """Something with a name that can be measured."""

    name: str

    @abstractmethod
    def run(self, pace: Pace) -> Findings:
        """Measure.

        Raises:
            BenchError: when a run fails or counts wrongly.
        """
