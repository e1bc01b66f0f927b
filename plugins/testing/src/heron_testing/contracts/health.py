"""The contract suite of health policies. Subclass `HealthPolicyContract` and name the driver."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import pytest
from msgspec import structs

from heron.spi.health import Detector, Diagnoser, HealthPolicy, Resolver, Sensor
from heron.spi.health_values import (
    Action,
    ActionKind,
    ComponentShape,
    Diagnosis,
    Measurement,
    Measurements,
    Observation,
    Sample,
    Subscription,
    TopologyShape,
)
from heron_testing.contracts.driver import DriverContract, in_time

__all__ = ["HealthPolicyContract", "busy_topology"]

_MANY = 1000  # tasks
_NAMES = ("task-time-s", "execute-count", "emit-count", "in-queue-bytes", "outlet-bytes", "backlog", "host-cpu-s")
_WRONG = (-1.0, 0.0, 1e30)


def busy_topology(tasks: int = 4, moments: int = 4) -> list[Observation]:
    """Return observations, one per second, of a spout that feeds a bolt whose tasks have no time to spare.

    The bolt may have at most twice as many tasks. Back pressure holds the spout for half of the time.
    """
    places = {task: 1 + task % 3 for task in range(2, tasks + 2)}
    bolt = ComponentShape("work", "bolt", places, (Subscription("source", "default"),), most=2 * tasks)
    shape = TopologyShape("busy", (ComponentShape("source", "spout", {1: 1}), bolt))
    return [Observation(float(at), shape, tuple(_samples(shape)), culprits=frozenset({2})) for at in range(moments)]


def _samples(shape: TopologyShape) -> list[Sample]:
    found = []
    for component in shape.components:
        for task, container in component.tasks.items():
            base = Sample("", 1e6, component.name, task, container, f"{component.name}-{task}")
            spout = component.kind == "spout"
            uses = {"user-cpu": 0.01, "throttled": 0.5, "input": 0.49} if spout else {"user-cpu": 0.99, "engine": 0.01}
            found += [
                structs.replace(base, name="task-time-s", labels={"use": use}, rate_per_s=uses[use]) for use in uses
            ]
            rate = 1000.0 if spout else 1000.0 / component.parallelism
            found.append(structs.replace(base, name="emit-count", labels={"stream": "default"}, rate_per_s=rate))
            if not spout:
                labels = {"component": "source", "stream": "default"}
                found.append(structs.replace(base, name="execute-count", labels=labels, rate_per_s=rate))
            found.append(structs.replace(base, name="in-queue-bytes", value=1e5))
    return found


class HealthPolicyContract(DriverContract):
    """Cases for `heron.spi.health.HealthPolicy`."""

    family = "health"

    @pytest.fixture
    def policy(self, options: dict[str, object]) -> HealthPolicy:
        """The policy under test."""
        opened = self.driver_class.open(options)
        assert isinstance(opened, HealthPolicy)
        return opened

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

    def test_measures_nothing_without_observations(self, policy: HealthPolicy) -> None:
        """The topology manager may be away when the health manager starts."""
        assert [each for sensor in policy.sensors() for each in sensor.measure(())] == []

    def test_sensors_read_only_the_metrics_that_they_name(self, policy: HealthPolicy) -> None:
        """The health manager does not ask for others, so a sensor that reads one would find nothing in a real run."""
        observations = busy_topology()
        for sensor in policy.sensors():
            if (names := sensor.metrics) is None:
                continue
            some = [
                replace(each, samples=tuple(sample for sample in each.samples if sample.name in names))
                for each in observations
            ]
            assert list(sensor.measure(some)) == list(sensor.measure(observations)), type(sensor).__name__

    def test_finds_nothing_where_nothing_is_measured(self, policy: HealthPolicy) -> None:
        """What is not known is not ill: a topology that has just started has no metrics."""
        (silent, *_) = busy_topology()
        assert _diagnoses(policy, [replace(silent, samples=(), culprits=frozenset())]) == []

    def test_measures_only_what_is_in_the_newest_plan(self, policy: HealthPolicy) -> None:
        """An action about a task that has left would be refused, or would hit another one."""
        *before, newest = busy_topology()
        source, work = newest.shape.components
        smaller = replace(work, tasks={2: 3})
        newest = replace(newest, shape=replace(newest.shape, components=(source, smaller), version=1))
        for each in _measured(policy, [*before, newest]):
            if each.subject.component:
                component = newest.shape.component(each.subject.component)
                assert not each.subject.task_id or each.subject.task_id in component.tasks
            elif each.subject.container_id:
                assert each.subject.container_id in newest.shape.containers()

    def test_bears_missing_and_contradictory_metrics(self, policy: HealthPolicy) -> None:
        """Metrics may be late, come from before a restart or from a clock that jumped."""
        for wrong in _WRONG:
            observations = busy_topology()
            lost = [each for each in observations[1].samples if each.name != "execute-count"]
            odd = [Sample(name, wrong, "work", 99, 9, "work-99", rate_per_s=wrong) for name in _NAMES]
            odd += [structs.replace(each, value=wrong, rate_per_s=None) for each in observations[2].samples]
            late = replace(observations[3], at_s=observations[0].at_s)
            mixed = [observations[0], replace(observations[1], samples=tuple(lost)), late]
            mixed.append(replace(observations[2], samples=tuple(odd), restarts={2: 5}, silent={1: 4.0, 77: 1.0}))
            for measurement in _measured(policy, mixed):
                assert math.isfinite(measurement.value), measurement
            for diagnosis in _diagnoses(policy, mixed):
                _check_actions(policy, mixed, diagnosis)

    def test_the_same_observations_give_the_same_diagnoses(self, policy: HealthPolicy) -> None:
        """The parts keep nothing between two calls, so a health manager may die at any moment."""
        first = _diagnoses(policy, busy_topology())
        _diagnoses(policy, busy_topology(7))
        assert _diagnoses(policy, busy_topology()) == first

    def test_actions_can_be_carried_out(self, policy: HealthPolicy) -> None:
        """The health manager checks them again; a policy that proposes nonsense would never do anything."""
        observations = busy_topology()
        assert policy.resolvers()
        for diagnosis in _diagnoses(policy, observations):
            _check_actions(policy, observations, diagnosis)

    def test_a_round_over_a_thousand_tasks_is_quick(self, policy: HealthPolicy) -> None:
        """The health manager has a core of the cluster for itself only in small part."""
        observations = busy_topology(_MANY)
        with in_time(1.0):
            _diagnoses(policy, observations)


def _measured(policy: HealthPolicy, window: Sequence[Observation]) -> list[Measurement]:
    return [each for sensor in policy.sensors() for each in sensor.measure(window)]


def _measurements(policy: HealthPolicy, window: Sequence[Observation]) -> Measurements:
    return Measurements(window[-1].shape, (each for sensor in policy.sensors() for each in sensor.measure(window)))


def _diagnoses(policy: HealthPolicy, window: Sequence[Observation]) -> list[Diagnosis]:
    measurements = _measurements(policy, window)
    symptoms = [each for detector in policy.detectors() for each in detector.detect(measurements)]
    return [each for part in policy.diagnosers() for each in part.diagnose(symptoms, measurements)]


def _check_actions(policy: HealthPolicy, window: Sequence[Observation], diagnosis: Diagnosis) -> None:
    measurements = _measurements(policy, window)
    for resolver in policy.resolvers():
        action = resolver.resolve(diagnosis, measurements)
        if action is not None:
            _check(action, window[-1].shape)


def _check(action: Action, shape: TopologyShape) -> None:
    assert action.text == action.text.strip()
    assert action.text
    assert "\n" not in action.text + action.command
    names = {each.name for each in shape.components}
    assert (action.kind is ActionKind.UPDATE) == bool(action.parallelism)
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
