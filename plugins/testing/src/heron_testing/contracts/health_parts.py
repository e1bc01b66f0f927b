"""The contract suites of the parts of a health policy. Subclass one, and give its fixtures the parts and their input.

`heron_testing.contracts.health.HealthPolicyContract` has all of their cases, for the parts of the policy.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import pytest

from heron.spi.health import Detector, Diagnoser, Resolver, Sensor
from heron.spi.health_values import (
    Action,
    ActionKind,
    Diagnosis,
    Measurement,
    Measurements,
    Subject,
    Symptom,
    TopologyShape,
)
from heron_testing.contracts.driver import in_processor_time
from heron_testing.contracts.parts.health_topology import busy_topology, odd_topology

__all__ = ["WRONG", "DetectorContract", "DiagnoserContract", "ResolverContract", "SensorContract", "check_action"]

WRONG = (-1.0, 0.0, 1e30)
_MANY = 1000  # tasks
_LIMIT_S = 0.1


class SensorContract:
    """Cases for `heron.spi.health.Sensor`."""

    @pytest.fixture
    def sensors(self) -> Sequence[Sensor]:
        """The sensors under test."""
        raise NotImplementedError

    def test_a_sensor_measures_nothing_without_observations(self, sensors: Sequence[Sensor]) -> None:
        """The topology manager may be away when the health manager starts."""
        for sensor in sensors:
            assert list(sensor.measure(())) == [], _name(sensor)

    def test_a_sensor_reads_only_the_metrics_that_it_names(self, sensors: Sequence[Sensor]) -> None:
        """The health manager does not ask for others, so a sensor that reads one would find nothing in a real run."""
        observations = busy_topology()
        for sensor in sensors:
            if (names := sensor.metrics) is None:
                continue
            some = [
                replace(each, samples=tuple(sample for sample in each.samples if sample.name in names))
                for each in observations
            ]
            assert list(sensor.measure(some)) == list(sensor.measure(observations)), _name(sensor)

    def test_a_sensor_measures_only_what_is_in_the_newest_plan(self, sensors: Sequence[Sensor]) -> None:
        """An action about a task that has left would be refused, or would hit another one."""
        *before, newest = busy_topology()
        source, work = newest.shape.components
        smaller = replace(work, tasks={2: 3})
        newest = replace(newest, shape=replace(newest.shape, components=(source, smaller), version=1))
        for sensor in sensors:
            for each in sensor.measure([*before, newest]):
                assert _is_of(each.subject, newest.shape), (_name(sensor), each)

    def test_a_sensor_bears_missing_and_contradictory_metrics(self, sensors: Sequence[Sensor]) -> None:
        """Metrics may be late, come from before a restart or from a clock that jumped."""
        for sensor in sensors:
            for each in (each for wrong in WRONG for each in sensor.measure(odd_topology(wrong))):
                assert math.isfinite(each.value), (_name(sensor), each)

    def test_a_sensor_keeps_nothing_between_two_calls(self, sensors: Sequence[Sensor]) -> None:
        """A health manager may die at any moment."""
        for sensor in sensors:
            first = list(sensor.measure(busy_topology()))
            list(sensor.measure(busy_topology(7)))
            assert list(sensor.measure(busy_topology())) == first, _name(sensor)

    def test_a_sensor_is_quick_with_a_thousand_tasks(self, sensors: Sequence[Sensor]) -> None:
        """The health manager may use a processor only in small part."""
        observations = busy_topology(_MANY)
        for sensor in sensors:
            with in_processor_time(_LIMIT_S):
                list(sensor.measure(observations))


class DetectorContract:
    """Cases for `heron.spi.health.Detector`."""

    @pytest.fixture
    def detectors(self) -> Sequence[Detector]:
        """The detectors under test."""
        raise NotImplementedError

    @pytest.fixture
    def measured(self) -> Sequence[Measurement]:
        """What the detectors read, measured of `busy_topology`."""
        raise NotImplementedError

    def test_a_detector_finds_nothing_where_nothing_is_measured(self, detectors: Sequence[Detector]) -> None:
        """A topology that has just started has no metrics."""
        for detector in detectors:
            assert list(detector.detect(Measurements(_SHAPE))) == [], _name(detector)

    def test_a_symptom_has_its_numbers(self, detectors: Sequence[Detector], measured: Sequence[Measurement]) -> None:
        """It is about something in the plan, and a person can compare the value with the limit."""
        for detector in detectors:
            for each in detector.detect(Measurements(_SHAPE, measured)):
                assert each.name, _name(detector)
                assert math.isfinite(each.value), (_name(detector), each)
                assert math.isfinite(each.limit), (_name(detector), each)
                assert _is_of(each.subject, _SHAPE), (_name(detector), each)

    def test_a_detector_bears_any_measurement_to_be_missing(
        self, detectors: Sequence[Detector], measured: Sequence[Measurement]
    ) -> None:
        """A sensor may fail, or its metric may be late."""
        for missing in {each.name for each in measured}:
            rest = Measurements(_SHAPE, (each for each in measured if each.name != missing))
            for detector in detectors:
                list(detector.detect(rest))

    def test_a_detector_keeps_nothing_between_two_calls(
        self, detectors: Sequence[Detector], measured: Sequence[Measurement]
    ) -> None:
        """The same measurements give the same symptoms."""
        measurements = Measurements(_SHAPE, measured)
        for detector in detectors:
            first = list(detector.detect(measurements))
            list(detector.detect(Measurements(_SHAPE)))
            assert list(detector.detect(measurements)) == first, _name(detector)


class DiagnoserContract:
    """Cases for `heron.spi.health.Diagnoser`."""

    @pytest.fixture
    def diagnosers(self) -> Sequence[Diagnoser]:
        """The diagnosers under test."""
        raise NotImplementedError

    @pytest.fixture
    def measured(self) -> Sequence[Measurement]:
        """What the diagnosers read, measured of `busy_topology`."""
        raise NotImplementedError

    @pytest.fixture
    def symptoms(self) -> Sequence[Symptom]:
        """The symptoms of these measurements that the diagnosers explain."""
        raise NotImplementedError

    def test_a_diagnoser_finds_nothing_where_nothing_is_measured(self, diagnosers: Sequence[Diagnoser]) -> None:
        """What is not known is not ill."""
        for diagnoser in diagnosers:
            assert list(diagnoser.diagnose((), Measurements(_SHAPE))) == [], _name(diagnoser)

    def test_a_diagnosis_is_about_the_plan(
        self, diagnosers: Sequence[Diagnoser], symptoms: Sequence[Symptom], measured: Sequence[Measurement]
    ) -> None:
        """A resolver looks its subject up, and people read its evidence in one line each."""
        for diagnoser in diagnosers:
            for each in diagnoser.diagnose(symptoms, Measurements(_SHAPE, measured)):
                assert each.name, _name(diagnoser)
                assert _is_of(each.subject, _SHAPE), (_name(diagnoser), each)
                assert all(line and "\n" not in line for line in each.evidence), (_name(diagnoser), each)

    def test_a_diagnoser_keeps_nothing_between_two_calls(
        self, diagnosers: Sequence[Diagnoser], symptoms: Sequence[Symptom], measured: Sequence[Measurement]
    ) -> None:
        """The same symptoms have the same causes."""
        measurements = Measurements(_SHAPE, measured)
        for diagnoser in diagnosers:
            first = list(diagnoser.diagnose(symptoms, measurements))
            list(diagnoser.diagnose((), Measurements(_SHAPE)))
            assert list(diagnoser.diagnose(symptoms, measurements)) == first, _name(diagnoser)


class ResolverContract:
    """Cases for `heron.spi.health.Resolver`."""

    @pytest.fixture
    def resolvers(self) -> Sequence[Resolver]:
        """The resolvers under test."""
        raise NotImplementedError

    @pytest.fixture
    def measured(self) -> Sequence[Measurement]:
        """What the resolvers read, measured of `busy_topology`."""
        raise NotImplementedError

    @pytest.fixture
    def diagnoses(self) -> Sequence[Diagnosis]:
        """Diagnoses of `busy_topology` that the resolvers know, and others."""
        raise NotImplementedError

    def test_a_resolver_leaves_what_it_does_not_know(
        self, resolvers: Sequence[Resolver], measured: Sequence[Measurement]
    ) -> None:
        """Another resolver of the policy may know an action."""
        unknown = Diagnosis("of-another-policy", Subject("work"), 0.9, ("it is not known",))
        for resolver in resolvers:
            assert resolver.resolve(unknown, Measurements(_SHAPE, measured)) is None, _name(resolver)

    def test_an_action_can_be_carried_out(
        self, resolvers: Sequence[Resolver], diagnoses: Sequence[Diagnosis], measured: Sequence[Measurement]
    ) -> None:
        """The health manager checks it again; a resolver that proposes nonsense would never do anything."""
        for resolver in resolvers:
            for each in diagnoses:
                check_action(resolver.resolve(each, Measurements(_SHAPE, measured)), _SHAPE)

    def test_a_resolver_keeps_nothing_between_two_calls(
        self, resolvers: Sequence[Resolver], diagnoses: Sequence[Diagnosis], measured: Sequence[Measurement]
    ) -> None:
        """The same diagnosis has the same remedy, also for the health manager that follows one that died."""
        measurements = Measurements(_SHAPE, measured)
        for resolver in resolvers:
            first = [resolver.resolve(each, measurements) for each in diagnoses]
            assert [resolver.resolve(each, measurements) for each in diagnoses] == first, _name(resolver)


_SHAPE = busy_topology()[-1].shape


def check_action(action: Action | None, shape: TopologyShape) -> None:
    """Check that an action is of one kind, and possible in that plan; None is always right."""
    if action is None:
        return
    assert action.text == action.text.strip()
    assert action.text
    assert "\n" not in action.text + action.command
    names = {each.name for each in shape.components}
    assert (action.kind is ActionKind.UPDATE) == bool(action.parallelism or action.containers)
    assert action.before == {name: shape.component(name).parallelism for name in action.parallelism}
    for name, tasks in action.parallelism.items():
        component = shape.component(name)
        assert component.least <= tasks
        assert component.most is None or tasks <= component.most
        assert tasks != component.parallelism
    if action.kind is ActionKind.RESTART:
        assert action.container_id in shape.containers()
    if action.kind is ActionKind.REBALANCE:
        assert action.component in names


def _is_of(subject: Subject, shape: TopologyShape) -> bool:
    """Whether the plan has this component, task or container."""
    if subject.component:
        found = [each for each in shape.components if each.name == subject.component]
        return bool(found) and (not subject.task_id or subject.task_id in found[0].tasks)
    return not subject.container_id or subject.container_id in shape.containers()


def _name(part: object) -> str:
    return type(part).__name__
