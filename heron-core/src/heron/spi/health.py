"""Contract of the health family: policies that find out what ails a topology, and what would help.

A policy is a chain of four kinds of parts, with Dhalion's names (Floratou et al., VLDB 2017):

    Sensor     observations  -> measurements   numbers about a task, component or container
    Detector   measurements  -> symptoms       what is out of its range
    Diagnoser  symptoms      -> diagnoses      causes, with evidence and a confidence
    Resolver   a diagnosis   -> an action      what would help, with the effect to expect

All parts are pure: no I/O, no clock, no state between two calls; the same input gives the same output. The health
manager calls them from one thread, once per period of the policy. A call should take at most 100 ms for 1,000 tasks. A
part that raises is named and left out for that period. If a part does not return in 10 s, it is named, and its policy
is left out until it does; nothing is changed because of it.
Metrics may be missing, late, or from before a restart: a part then finds less, and never guesses.

`heron.spi.health_values` has the values.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from typing import ClassVar

from heron.spi.driver import Driver
from heron.spi.health_values import Action, Diagnosis, Measurement, Measurements, Observation, Rhythm, Symptom

__all__ = ["OLDEST_SPI_VERSION", "SPI_VERSION", "Detector", "Diagnoser", "HealthPolicy", "Resolver", "Sensor"]

SPI_VERSION = 1
OLDEST_SPI_VERSION = 1


class Sensor(ABC):
    """Turns what was observed into measurements.

    `metrics` are the names of the metrics that it reads; None for any. The health manager does not ask for metrics that
    no sensor reads.
    """

    metrics: ClassVar[frozenset[str] | None] = None

    @abstractmethod
    def measure(self, window: Sequence[Observation]) -> Iterable[Measurement]:
        """Return measurements of the present, from the observations of the look-back window, oldest first.

        The window may be empty, may begin before a change of the plan, and may have gaps. All observations are of one
        topology. A measurement is about a subject of the newest observation.
        """


class Detector(ABC):
    """Recognises what is out of its range."""

    @abstractmethod
    def detect(self, measurements: Measurements) -> Iterable[Symptom]:
        """Return the symptoms that these measurements show; none if a measurement is missing."""


class Diagnoser(ABC):
    """Explains symptoms by a cause."""

    @abstractmethod
    def diagnose(self, symptoms: Sequence[Symptom], measurements: Measurements) -> Iterable[Diagnosis]:
        """Return the causes that explain some of these symptoms, each with its evidence.

        `symptoms` are those of all detectors of the policy.
        """


class Resolver(ABC):
    """Knows what helps against some diagnoses."""

    @abstractmethod
    def resolve(self, diagnosis: Diagnosis, measurements: Measurements) -> Action | None:
        """Return the action against this diagnosis, or None if the resolver knows none.

        It only proposes: the health manager decides whether and when the action is carried out.
        """


class HealthPolicy(Driver):
    """Chooses the parts that look after a topology, and how often. A driver of the family `health`.

    The profile names policies in its section `health`. The parts are asked for once, after `open`.
    """

    @abstractmethod
    def rhythm(self) -> Rhythm:
        """Return how often the parts are called, and how far back their observations reach."""

    @abstractmethod
    def sensors(self) -> Sequence[Sensor]:
        """Return the sensors, at least one."""

    @abstractmethod
    def detectors(self) -> Sequence[Detector]:
        """Return the detectors."""

    @abstractmethod
    def diagnosers(self) -> Sequence[Diagnoser]:
        """Return the diagnosers; their diagnoses are ordered by confidence."""

    @abstractmethod
    def resolvers(self) -> Sequence[Resolver]:
        """Return the resolvers; the first one that knows an action against a diagnosis decides."""
