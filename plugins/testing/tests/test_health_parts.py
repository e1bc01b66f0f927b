"""The suites of the parts of health policies fail for a part that breaks a rule."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import ClassVar

import pytest

from heron.spi.health import Detector, Diagnoser, Resolver, Sensor
from heron.spi.health_values import (
    Action,
    ActionKind,
    Diagnosis,
    Measurement,
    Measurements,
    Observation,
    Subject,
    Symptom,
)
from heron_testing.contracts.health_parts import DetectorContract, DiagnoserContract, ResolverContract, SensorContract

WORK = Subject("work", 2)
MEASURED = (Measurement("count", WORK, 3.0), Measurement("other", WORK, 1.0))
SYMPTOMS = (Symptom("many", WORK, 3.0, 2.0),)
MANY = Diagnosis("too-many", WORK, 0.9, ("there are 3",))


class Counts(Sensor):
    """The number of a task's metrics."""

    def measure(self, window: Sequence[Observation]) -> Iterable[Measurement]:
        """`Sensor.measure`."""
        if window:
            count = sum(each.task_id == WORK.task_id for each in window[-1].samples)
            yield Measurement("count", WORK, float(count))


class Hasty(Counts):
    """It takes an observation for granted."""

    def measure(self, window: Sequence[Observation]) -> Iterable[Measurement]:
        """`Sensor.measure`."""
        yield Measurement("count", WORK, float(len(window[-1].samples)))


class Silent(Counts):
    """It does not name the metrics that it reads."""

    metrics: ClassVar[frozenset[str] | None] = frozenset()


class Rising(Counts):
    """It remembers its calls."""

    calls = 0

    def measure(self, window: Sequence[Observation]) -> Iterable[Measurement]:
        """`Sensor.measure`."""
        self.calls += bool(window)
        return [Measurement("count", WORK, float(self.calls))] if window else []


class Stale(Counts):
    """It measures tasks that have left."""

    def measure(self, window: Sequence[Observation]) -> Iterable[Measurement]:
        """`Sensor.measure`."""
        return [Measurement("count", Subject("work", 3), 1.0)] if window else []


class Endless(Counts):
    """It divides by what it was given."""

    def measure(self, window: Sequence[Observation]) -> Iterable[Measurement]:
        """`Sensor.measure`."""
        values = [each.value for each in window[-1].samples] if window else []
        return [Measurement("count", WORK, float("inf") if 0.0 in values else 1.0)] if window else []


class Many(Detector):
    """More than two."""

    def detect(self, measurements: Measurements) -> Iterable[Symptom]:
        """`Detector.detect`."""
        for each in measurements.of("count"):
            yield Symptom("many", each.subject, each.value, 2.0)


class Guessing(Many):
    """It finds something where nothing is measured."""

    def detect(self, measurements: Measurements) -> Iterable[Symptom]:
        """`Detector.detect`."""
        return SYMPTOMS


class Demanding(Many):
    """It needs two measurements."""

    def detect(self, measurements: Measurements) -> Iterable[Symptom]:
        """`Detector.detect`."""
        for each in measurements.of("count"):
            other = measurements.value("other", each.subject)
            assert other is not None
            yield Symptom("many", each.subject, each.value, other)


class Unnamed(Many):
    """Its symptom has no limit that a person can compare."""

    def detect(self, measurements: Measurements) -> Iterable[Symptom]:
        """`Detector.detect`."""
        return [Symptom("many", each.subject, each.value, float("nan")) for each in measurements.of("count")]


class TooMany(Diagnoser):
    """Explains them."""

    def diagnose(self, symptoms: Sequence[Symptom], measurements: Measurements) -> Iterable[Diagnosis]:
        """`Diagnoser.diagnose`."""
        return [MANY] if symptoms else []


class Always(TooMany):
    """It explains what is not there."""

    def diagnose(self, symptoms: Sequence[Symptom], measurements: Measurements) -> Iterable[Diagnosis]:
        """`Diagnoser.diagnose`."""
        return [MANY]


class Elsewhere(TooMany):
    """It blames a task that the plan does not have."""

    def diagnose(self, symptoms: Sequence[Symptom], measurements: Measurements) -> Iterable[Diagnosis]:
        """`Diagnoser.diagnose`."""
        return [Diagnosis("too-many", Subject("work", 99), 0.9, ("there are 3",))] if symptoms else []


class Restart(Resolver):
    """Restarts the container of the task."""

    container = 1

    def resolve(self, diagnosis: Diagnosis, measurements: Measurements) -> Action | None:
        """`Resolver.resolve`."""
        if diagnosis.name != MANY.name:
            return None
        self.container += self.step()
        return Action(ActionKind.RESTART, f"restart container {self.container}", container_id=self.container)

    def step(self) -> int:
        """It restarts the same container each time."""
        return 0


class Wandering(Restart):
    """It restarts another container each time."""

    def step(self) -> int:
        """The container after the last one."""
        return 1


class Missing(Restart):
    """It restarts a container that the plan does not have."""

    container = 99


class Eager(Restart):
    """It has a remedy against everything."""

    def resolve(self, diagnosis: Diagnosis, measurements: Measurements) -> Action | None:
        """`Resolver.resolve`."""
        return Action(ActionKind.ADVISE, "do something")


class TestSensor(SensorContract):
    """A part without a policy is checked by itself."""

    @pytest.fixture
    def sensors(self) -> Sequence[Sensor]:
        """A good one."""
        return (Counts(),)


class TestDetector(DetectorContract):
    """As above."""

    @pytest.fixture
    def detectors(self) -> Sequence[Detector]:
        """A good one."""
        return (Many(),)

    @pytest.fixture
    def measured(self) -> Sequence[Measurement]:
        """What it reads."""
        return MEASURED


class TestDiagnoser(DiagnoserContract):
    """As above."""

    @pytest.fixture
    def diagnosers(self) -> Sequence[Diagnoser]:
        """A good one."""
        return (TooMany(),)

    @pytest.fixture
    def measured(self) -> Sequence[Measurement]:
        """What it reads."""
        return MEASURED

    @pytest.fixture
    def symptoms(self) -> Sequence[Symptom]:
        """What it explains."""
        return SYMPTOMS


class TestResolver(ResolverContract):
    """As above."""

    @pytest.fixture
    def resolvers(self) -> Sequence[Resolver]:
        """A good one."""
        return (Restart(),)

    @pytest.fixture
    def measured(self) -> Sequence[Measurement]:
        """What it reads."""
        return MEASURED

    @pytest.fixture
    def diagnoses(self) -> Sequence[Diagnosis]:
        """What it knows."""
        return (MANY,)


SENSORS, DETECTORS, DIAGNOSERS, RESOLVERS = (
    SensorContract(),
    DetectorContract(),
    DiagnoserContract(),
    ResolverContract(),
)


@pytest.mark.parametrize(
    ("sensor", "case"),
    [
        (Hasty(), SENSORS.test_a_sensor_measures_nothing_without_observations),
        (Silent(), SENSORS.test_a_sensor_reads_only_the_metrics_that_it_names),
        (Stale(), SENSORS.test_a_sensor_measures_only_what_is_in_the_newest_plan),
        (Endless(), SENSORS.test_a_sensor_bears_missing_and_contradictory_metrics),
        (Rising(), SENSORS.test_a_sensor_keeps_nothing_between_two_calls),
    ],
)
def test_a_bad_sensor_is_found(sensor: Sensor, case: object) -> None:
    """By the case of its rule."""
    assert callable(case)
    with pytest.raises((AssertionError, IndexError)):
        case([sensor])


def test_a_bad_detector_is_found() -> None:
    """By the case of its rule."""
    with pytest.raises(AssertionError):
        DETECTORS.test_a_detector_finds_nothing_where_nothing_is_measured([Guessing()])
    with pytest.raises(AssertionError):
        DETECTORS.test_a_symptom_has_its_numbers([Unnamed()], MEASURED)
    with pytest.raises(AssertionError):
        DETECTORS.test_a_detector_bears_any_measurement_to_be_missing([Demanding()], MEASURED)


def test_a_bad_diagnoser_is_found() -> None:
    """By the case of its rule."""
    with pytest.raises(AssertionError):
        DIAGNOSERS.test_a_diagnoser_finds_nothing_where_nothing_is_measured([Always()])
    with pytest.raises(AssertionError):
        DIAGNOSERS.test_a_diagnosis_is_about_the_plan([Elsewhere()], SYMPTOMS, MEASURED)


def test_a_bad_resolver_is_found() -> None:
    """By the case of its rule."""
    with pytest.raises(AssertionError):
        RESOLVERS.test_a_resolver_leaves_what_it_does_not_know([Eager()], MEASURED)
    with pytest.raises(AssertionError):
        RESOLVERS.test_an_action_can_be_carried_out([Missing()], [MANY], MEASURED)
    with pytest.raises(AssertionError):
        RESOLVERS.test_a_resolver_keeps_nothing_between_two_calls([Wandering()], [MANY], MEASURED)
