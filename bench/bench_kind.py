"""What every bench is: something with a name that can be measured."""

from __future__ import annotations

from abc import ABC, abstractmethod

from bench.findings import Findings, Pace

__all__ = ["Bench"]


class Bench(ABC):
    """One bench, of one kind or another."""

    name: str

    @abstractmethod
    def run(self, pace: Pace) -> Findings:
        """Measures.

        Raises:
            BenchError: when a run fails, or counts wrongly.
        """
