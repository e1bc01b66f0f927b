"""The contract suite of health policies. Subclass `HealthPolicyContract` and name the driver."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from heron.spi.health import Detector, Diagnoser, HealthPolicy, Resolver, Sensor
from heron.spi.health_values import Diagnosis, Measurement, Measurements, Observation, Symptom
from heron_testing.contracts.driver import DriverContract, in_processor_time
from heron_testing.contracts.health_parts import (
    WRONG,
    DetectorContract,
    DiagnoserContract,
    ResolverContract,
    SensorContract,
    check_action,
)
from heron_testing.contracts.parts.health_topology import busy_topology, odd_topology

__all__ = ["HealthPolicyContract", "busy_topology"]

_MANY = 1000  # tasks


class HealthPolicyContract(SensorContract, DetectorContract, DiagnoserContract, ResolverContract, DriverContract):
    """Cases for `heron.spi.health.HealthPolicy`, and for each of its parts by itself."""

    family = "health"

    @pytest.fixture
    def policy(self, options: dict[str, object]) -> HealthPolicy:
        """The policy under test."""
        opened = self.driver_class.open(options)
        assert isinstance(opened, HealthPolicy)
        return opened

    @pytest.fixture
    def sensors(self, policy: HealthPolicy) -> Sequence[Sensor]:
        """The sensors of the policy."""
        return policy.sensors()

    @pytest.fixture
    def detectors(self, policy: HealthPolicy) -> Sequence[Detector]:
        """The detectors of the policy."""
        return policy.detectors()

    @pytest.fixture
    def diagnosers(self, policy: HealthPolicy) -> Sequence[Diagnoser]:
        """The diagnosers of the policy."""
        return policy.diagnosers()

    @pytest.fixture
    def resolvers(self, policy: HealthPolicy) -> Sequence[Resolver]:
        """The resolvers of the policy."""
        return policy.resolvers()

    @pytest.fixture
    def measured(self, policy: HealthPolicy) -> Sequence[Measurement]:
        """What the policy measures of `busy_topology`."""
        return _measured(policy, busy_topology())

    @pytest.fixture
    def symptoms(self, policy: HealthPolicy) -> Sequence[Symptom]:
        """What the policy detects in it."""
        return _symptoms(policy, _measurements(policy, busy_topology()))

    @pytest.fixture
    def diagnoses(self, policy: HealthPolicy) -> Sequence[Diagnosis]:
        """What the policy finds in it."""
        return _diagnoses(policy, busy_topology())

    def test_has_a_rhythm(self, policy: HealthPolicy) -> None:
        """The health manager asks for it before the first round."""
        rhythm = policy.rhythm()
        assert 0 < rhythm.period_s <= rhythm.look_back_s

    def test_has_parts_of_each_kind(self, policy: HealthPolicy) -> None:
        """A chain without one of its parts finds nothing, or does nothing about it."""
        kinds = {
            Sensor: policy.sensors(),
            Detector: policy.detectors(),
            Diagnoser: policy.diagnosers(),
            Resolver: policy.resolvers(),
        }
        for kind, parts in kinds.items():
            assert parts, f"no {kind.__name__}"
            assert all(isinstance(part, kind) for part in parts)

    def test_finds_nothing_where_nothing_is_measured(self, policy: HealthPolicy) -> None:
        """What is not known is not ill: a topology that has just started has no metrics."""
        (silent, *_) = busy_topology()
        assert _diagnoses(policy, [replace(silent, samples=(), culprits=frozenset())]) == []

    def test_bears_missing_and_contradictory_metrics(self, policy: HealthPolicy) -> None:
        """What follows from them can be carried out, or nothing follows."""
        for window in map(odd_topology, WRONG):
            measurements = _measurements(policy, window)
            for diagnosis in _diagnoses(policy, window):
                for resolver in policy.resolvers():
                    check_action(resolver.resolve(diagnosis, measurements), window[-1].shape)

    def test_the_same_observations_give_the_same_diagnoses(self, policy: HealthPolicy) -> None:
        """The parts keep nothing between two calls, so a health manager may die at any moment."""
        first = _diagnoses(policy, busy_topology())
        _diagnoses(policy, busy_topology(7))
        assert _diagnoses(policy, busy_topology()) == first

    def test_a_round_over_a_thousand_tasks_is_quick(self, policy: HealthPolicy) -> None:
        """The health manager has a core of the cluster for itself only in small part."""
        observations = busy_topology(_MANY)
        with in_processor_time(1.0):
            _diagnoses(policy, observations)


def _measured(policy: HealthPolicy, window: Sequence[Observation]) -> list[Measurement]:
    return [each for sensor in policy.sensors() for each in sensor.measure(window)]


def _measurements(policy: HealthPolicy, window: Sequence[Observation]) -> Measurements:
    return Measurements(window[-1].shape, _measured(policy, window))


def _symptoms(policy: HealthPolicy, measurements: Measurements) -> list[Symptom]:
    return [each for detector in policy.detectors() for each in detector.detect(measurements)]


def _diagnoses(policy: HealthPolicy, window: Sequence[Observation]) -> list[Diagnosis]:
    measurements = _measurements(policy, window)
    symptoms = _symptoms(policy, measurements)
    return [each for part in policy.diagnosers() for each in part.diagnose(symptoms, measurements)]
